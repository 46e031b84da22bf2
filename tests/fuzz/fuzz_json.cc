// Bytes as a .json file: lines, an array or values, as its first bytes tell.
#include "fuzz/fuzz_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hlat::fuzz::open_and_read(hlat::fuzz::write_file("a.json", {reinterpret_cast<const char*>(data), size}));
  return 0;
}
