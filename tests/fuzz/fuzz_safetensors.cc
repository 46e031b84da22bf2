// Bytes as a safetensors file: as they are, and as the JSON of a header with a right length before it and as many bytes behind it as the
// first two bytes say. A header that is accepted is the same when it is written and read again.
#include <cstring>

#include "checkpoint/safetensors.h"
#include "fuzz/fuzz_reader.h"

namespace {

void check(const hlat::SafetensorsHeader& header, uint64_t data_bytes) {
  uint64_t at = 0;
  for (const hlat::SafeTensor& tensor : header.tensors) {
    if (tensor.begin != at || tensor.end < at) std::abort();
    at = tensor.end;
  }
  if (at != data_bytes) std::abort();
  const std::string saved = header.save();
  const hlat::SafetensorsHeader again = hlat::SafetensorsHeader::parse(saved, saved.size() + data_bytes);
  if (again.tensors.size() != header.tensors.size() || again.bytes != saved.size()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  try {
    const hlat::SafetensorsHeader header = hlat::SafetensorsHeader::read(hlat::fuzz::write_file("a.safetensors", bytes));
    check(header, size - header.bytes);
  } catch (const hlat::Error&) {
  }
  if (size < 2) return 0;
  const uint64_t behind = static_cast<uint64_t>(data[0]) << 8 | data[1], length = size - 2;
  std::string text(sizeof length, '\0');
  std::memcpy(text.data(), &length, sizeof length);
  text += bytes.substr(2);
  try {
    check(hlat::SafetensorsHeader::parse(text, text.size() + behind), behind);
  } catch (const hlat::Error&) {
  }
  return 0;
}
