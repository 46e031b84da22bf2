# Fuzz targets for libFuzzer (preset fuzz, clang): each tests/fuzz/fuzz_<name>.cc is a program of its own over the sources that read files
# of others, which are compiled once more for it, with coverage and sanitizers. tools/fuzz.sh runs them from the seeds in
# tests/fuzz/seeds/<name>.
if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "fuzz targets need clang: cmake --preset fuzz")
endif()
set(HLAT_FUZZ_FLAGS -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
set(HLAT_FUZZ_SOURCES ${HLAT_SOURCES})
list(FILTER HLAT_FUZZ_SOURCES INCLUDE REGEX "/src/(base|data|tensor)/|/src/checkpoint/(index|safetensors|checksum)\\.cc$")
hlat_unity(HLAT_FUZZ_SOURCES ${PROJECT_SOURCE_DIR}/src)
add_library(hlat_fuzzed OBJECT EXCLUDE_FROM_ALL ${HLAT_FUZZ_SOURCES})
target_include_directories(hlat_fuzzed PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
target_compile_options(hlat_fuzzed PUBLIC ${HLAT_FUZZ_FLAGS} -fsanitize=fuzzer-no-link)
target_link_libraries(hlat_fuzzed PUBLIC OpenMP::OpenMP_CXX fmt::fmt spdlog::spdlog nlohmann_json::nlohmann_json simdjson::simdjson
  ZLIB::ZLIB PkgConfig::HLAT_DATA ${HLAT_ARROW_LIBRARIES})

add_custom_target(fuzz_targets)
file(GLOB HLAT_FUZZ_PROGRAMS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/fuzz_*.cc)
set_source_files_properties(${PROJECT_SOURCE_DIR}/tests/fuzz/fuzz_encode.cc PROPERTIES
  COMPILE_DEFINITIONS HLAT_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
foreach(source ${HLAT_FUZZ_PROGRAMS})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} EXCLUDE_FROM_ALL ${source})
  target_link_libraries(${name} PRIVATE hlat_fuzzed)
  target_link_options(${name} PRIVATE ${HLAT_FUZZ_FLAGS} -fsanitize=fuzzer)
  add_dependencies(fuzz_targets ${name})
endforeach()
