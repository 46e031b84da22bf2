// Bytes as a .model: tiktoken's ranks or SentencePiece.
#include "fuzz/fuzz_tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  hlat::fuzz::load_and_use([&] {
    return hlat::tokenizer::looks_like_tiktoken(content) ? hlat::tokenizer::read_tiktoken(content)
                                                         : hlat::tokenizer::read_sentencepiece(content);
  });
  return 0;
}
