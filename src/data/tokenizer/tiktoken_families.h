// The known families of tiktoken's rank files. A file is told by how many ranks it has and by some of its tokens; the pattern and the
// special tokens are those that the family's own code gives it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/tokenizer/bpe_model.h"

namespace hlat::tokenizer {

struct TiktokenFamily {
  std::string_view name;
  int64_t ranks;  // tokens in the file
  struct Known {
    uint32_t rank;
    std::string_view bytes;
  };
  std::vector<Known> known;  // tokens that tell it from another file with as many
  std::string_view pattern;
  std::vector<std::pair<std::string, int64_t>> (*special_tokens)();
  std::string_view bos;  // names; empty: none
  std::string_view eos;
  bool nfc = false;              // text is composed first
  bool ends_with_space = false;  // white space at the end of a text is one word, as in tiktoken's own cl100k
};

const std::vector<TiktokenFamily>& tiktoken_families();
// An Error says what to give instead where the ranks are of no known family.
const TiktokenFamily& family_of(const std::vector<RankedToken>& tokens);

}  // namespace hlat::tokenizer
