// Bytes as a file .arrow. Damaged lengths make Arrow ask for more memory than there is: it must be refused, as outside of the fuzzer, and
// seen by the sanitizer, so Arrow gets it from malloc.
#include "fuzz/fuzz_reader.h"

extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1:max_allocation_size_mb=1024"; }

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) { return setenv("ARROW_DEFAULT_MEMORY_POOL", "system", 1); }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hlat::fuzz::open_and_read(hlat::fuzz::write_file("a.arrow", {reinterpret_cast<const char*>(data), size}));
  return 0;
}
