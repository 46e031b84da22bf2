// Bytes as a .txt file with separators: the first byte chooses which.
#include "fuzz/fuzz_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string separators[] = {"", "line", "blank_line", "<|end|>"};
  const std::string path = hlat::fuzz::write_file("a.txt", {reinterpret_cast<const char*>(data) + 1, size - 1});
  hlat::fuzz::open_and_read(path, separators[data[0] % 4]);
  return 0;
}
