# The parts of the CUDA backend that stand on NVIDIA's libraries: matmul (cuBLASLt) and attention (cuDNN, and kernels of our own).
# Included when a CUDA compiler was found. None of the libraries is linked: they are loaded when first used, so the program starts
# without them; only the small static runtime is part of it.
#   hlat_cuda_libs    the objects, to link
#   cuda_lib_check    checks and times them (tests/gpu); skips itself without a GPU
# cuDNN's headers come with the toolkit or, like its frontend, from pip packages in .venv-build (tools/setup_cuda.sh).
find_package(CUDAToolkit 13 REQUIRED)

file(GLOB HLAT_CUDNN_PACKAGES ${PROJECT_SOURCE_DIR}/.venv-build/lib/python3*/site-packages)
find_path(HLAT_CUDNN_FRONTEND cudnn_frontend.h HINTS ${HLAT_CUDNN_PACKAGES} PATH_SUFFIXES include)
find_path(HLAT_CUDNN_INCLUDE cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ${HLAT_CUDNN_PACKAGES} PATH_SUFFIXES nvidia/cudnn/include)
set(HLAT_CUDA_LIB_DIR ${PROJECT_SOURCE_DIR}/src/backend/cuda)
if(HLAT_CUDNN_FRONTEND AND HLAT_CUDNN_INCLUDE)
  set(HLAT_CUDNN_SOURCE ${HLAT_CUDA_LIB_DIR}/cudnn_attention.cc)
else()
  message(STATUS "hlat: without cuDNN (tools/setup_cuda.sh installs its headers): attention on our own kernels")
  set(HLAT_CUDNN_SOURCE ${HLAT_CUDA_LIB_DIR}/cudnn_attention_none.cc)
endif()

# The GPU compiler gets files of its own: it does not know our warning flags.
add_library(hlat_cuda_lib_kernels OBJECT
  ${HLAT_CUDA_LIB_DIR}/attention_kernel.cu ${HLAT_CUDA_LIB_DIR}/attention_kernel_bwd.cu
  ${HLAT_CUDA_LIB_DIR}/attention_mma.cu ${HLAT_CUDA_LIB_DIR}/matmul_plain.cu)
target_include_directories(hlat_cuda_lib_kernels PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_compile_options(hlat_cuda_lib_kernels PRIVATE -Werror=all-warnings -Xcompiler=-Wall,-Wextra)

add_library(hlat_cuda_libs STATIC
  ${HLAT_CUDA_LIB_DIR}/attention.cc ${HLAT_CUDNN_SOURCE} ${HLAT_CUDA_LIB_DIR}/cublaslt.cc ${HLAT_CUDA_LIB_DIR}/matmul.cc
  ${HLAT_CUDA_LIB_DIR}/matmul_choices.cc ${HLAT_CUDA_LIB_DIR}/matmul_measure.cc ${HLAT_CUDA_LIB_DIR}/matmul_problem.cc
  ${HLAT_CUDA_LIB_DIR}/shared_library.cc $<TARGET_OBJECTS:hlat_cuda_lib_kernels>)
target_link_libraries(hlat_cuda_libs PUBLIC hlat_core CUDA::cudart_static ${CMAKE_DL_LIBS})
if(HLAT_CUDNN_FRONTEND AND HLAT_CUDNN_INCLUDE)
  target_include_directories(hlat_cuda_libs SYSTEM PRIVATE ${HLAT_CUDNN_FRONTEND} ${HLAT_CUDNN_INCLUDE})
endif()
set_source_files_properties(${HLAT_CUDA_LIB_DIR}/shared_library.cc PROPERTIES
  COMPILE_DEFINITIONS HLAT_CUDA_LIBRARIES="${CUDAToolkit_LIBRARY_DIR}")

if(HLAT_TESTS)
  add_library(hlat_gpu_reference OBJECT ${PROJECT_SOURCE_DIR}/tests/gpu/gpu_reference.cu)
  target_include_directories(hlat_gpu_reference PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  add_executable(cuda_lib_check ${PROJECT_SOURCE_DIR}/tests/gpu/cuda_lib_check.cc $<TARGET_OBJECTS:hlat_gpu_reference>)
  target_include_directories(cuda_lib_check PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(cuda_lib_check PRIVATE hlat_cuda_libs)
  find_package(GTest QUIET)
  if(GTest_FOUND)
    enable_testing()
    add_executable(cuda_lib_tests ${PROJECT_SOURCE_DIR}/tests/gpu/matmul_choices_test.cc)
    target_include_directories(cuda_lib_tests PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(cuda_lib_tests PRIVATE hlat_cuda_libs GTest::gtest_main)
    add_test(NAME cuda_lib_tests COMMAND cuda_lib_tests)
    add_test(NAME cuda_lib_check COMMAND cuda_lib_check check)  # skips itself without a GPU
    set_tests_properties(cuda_lib_tests cuda_lib_check PROPERTIES LABELS unit TIMEOUT 600)
  endif()
endif()
