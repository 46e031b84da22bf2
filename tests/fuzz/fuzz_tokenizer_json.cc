// Bytes as a tokenizer.json or tekken.json. What is accepted has to encode and decode text.
#include "fuzz/fuzz_tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  if (!content.starts_with('{')) return 0;
  hlat::fuzz::load_and_use([&] { return hlat::tokenizer::read_tokenizer(content); });
  return 0;
}
