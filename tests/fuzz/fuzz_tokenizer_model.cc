// Bytes as a .model: tiktoken's ranks or SentencePiece.
#include "fuzz/fuzz_tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  hlat::fuzz::load_and_use([&] {
    // Files of a family's true size are out of reach here, so the ranks count as one of each.
    const auto& families = hlat::tokenizer::tiktoken_families();
    return hlat::tokenizer::looks_like_tiktoken(content) ? hlat::tokenizer::read_tiktoken_as(content, families[size % families.size()])
                                                         : hlat::tokenizer::read_sentencepiece(content);
  });
  return 0;
}
