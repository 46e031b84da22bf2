// Bytes as a file .jsonl.
#include "fuzz/fuzz_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hlat::fuzz::open_and_read(hlat::fuzz::write_file("a.jsonl", {reinterpret_cast<const char*>(data), size}));
  return 0;
}
