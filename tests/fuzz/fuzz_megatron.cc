// Bytes as a Megatron pair: two of them are the length of the .idx, which follows; the rest is the .bin.
#include <algorithm>

#include "fuzz/fuzz_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  const size_t idx = std::min<size_t>(data[0] + 256u * data[1], rest.size());
  hlat::fuzz::write_file("a.idx", rest.substr(0, idx));
  hlat::fuzz::open_and_read(hlat::fuzz::write_file("a.bin", rest.substr(idx)));
  return 0;
}
