// Tokenizers whose file is a list of tokens with ranks, without merges: tiktoken's and Mistral's.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/tokenizer/bpe_model.h"
#include "data/tokenizer/pipeline.h"

namespace hlat::tokenizer {

struct RankedFile {
  std::vector<RankedToken> tokens;
  std::vector<std::pair<std::string, int64_t>> special;  // names and ids; never found in text
  std::string bos;                                       // a special token's name; empty: none
  std::string eos;
  SplitStep step;
  Normalizer normalizer;
  std::string kind;
  uint64_t fingerprint = 0;
};

// An Error where one of the 256 bytes is no token.
void check_bytes(const std::vector<RankedToken>& tokens);

std::unique_ptr<Tokenizer> make_ranked_tokenizer(RankedFile file);

}  // namespace hlat::tokenizer
