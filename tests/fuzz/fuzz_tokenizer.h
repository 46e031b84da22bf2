// What the fuzz targets of the tokenizers share. An Error is a good answer to a bad file; anything else that is thrown is a bug.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "data/tokenizer/formats.h"

namespace hlat::fuzz {

inline void require(bool condition) {
  if (!condition) std::abort();
}

template <class Load>
void load_and_use(const Load& load) {
  std::unique_ptr<Tokenizer> tokenizer;
  try {
    tokenizer = load();
    const std::string text =
        "The boats' 12 345,  \n\t caf\u00e9 e\u0301 \u8239\u8239 \U0001F600 \u2581x <s></s>\xFF" + std::string(100, 'a');
    std::vector<int32_t> ids;
    const auto encoder = tokenizer->encoder();
    encoder->encode(text, ids);
    for (const int32_t id : ids) require(id >= 0 && id < tokenizer->vocab_size());
    tokenizer->decode(ids);
    encoder->cut(text, 20);
    require(!tokenizer->describe().empty());
  } catch (const Error&) {
  }
}

}  // namespace hlat::fuzz
