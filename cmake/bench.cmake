# Programs of bench/: hlat_bench, where Google Benchmark is found, and two that share code with the tests.
find_package(benchmark QUIET)
if(benchmark_FOUND)
  add_executable(hlat_bench bench/reader_bench.cc bench/tokenizer_bench.cc)
  target_link_libraries(hlat_bench PRIVATE hlat_core benchmark::benchmark benchmark::benchmark_main)
  target_compile_definitions(hlat_bench PRIVATE HLAT_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
else()
  message(STATUS "hlat: Google Benchmark not found: no hlat_bench")
endif()
if(TARGET hlat_test_support)
  # Prints how near each op comes to the copy rate of the machine it runs on.
  add_executable(op_bandwidth bench/op_bandwidth.cc)
  target_link_libraries(op_bandwidth PRIVATE hlat_test_support)
  # Writes the weights and batches of a run, for a reference that trains on them again (tools/curve_reference.py).
  add_executable(curve_dump bench/curve_dump.cc)
  target_link_libraries(curve_dump PRIVATE hlat_test_support)
endif()
