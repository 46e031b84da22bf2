# Apache Arrow C++ for .arrow and .parquet files, from the pip package pyarrow in .venv-build (tools/setup_arrow.sh). Linked with
# the path it has there. Without it such files are an error that says so.
# Sets HLAT_ARROW_INCLUDE and HLAT_ARROW_LIBRARIES, empty without Arrow, and HLAT_ARROW_LEFT_OUT: of the two sources of table columns,
# the one not to build. Only one source gets the headers: with or without Arrow, the others compile to the same.
set(HLAT_ARROW "AUTO" CACHE STRING "Arrow and Parquet files: AUTO, where pyarrow is in .venv-build, or OFF")
file(GLOB HLAT_ARROW_INCLUDE ${PROJECT_SOURCE_DIR}/.venv-build/lib/python3*/site-packages/pyarrow/include)
file(GLOB HLAT_ARROW_LIBRARIES ${HLAT_ARROW_INCLUDE}/../libarrow.so.[0-9]* ${HLAT_ARROW_INCLUDE}/../libparquet.so.[0-9]*)
list(LENGTH HLAT_ARROW_LIBRARIES HLAT_ARROW_COUNT)
if(NOT HLAT_ARROW STREQUAL "OFF" AND EXISTS "${HLAT_ARROW_INCLUDE}/arrow/api.h" AND HLAT_ARROW_COUNT EQUAL 2)
  set_source_files_properties(src/data/reader/arrow_column.cc PROPERTIES COMPILE_OPTIONS "-isystem;${HLAT_ARROW_INCLUDE}")
  set(HLAT_ARROW_LEFT_OUT no_table_column.cc)
else()
  message(STATUS "hlat: without Arrow (tools/setup_arrow.sh installs it): no .arrow and .parquet files")
  set(HLAT_ARROW_INCLUDE)
  set(HLAT_ARROW_LIBRARIES)
  set(HLAT_ARROW_LEFT_OUT arrow_column.cc)
endif()
