// Tokenizer over a BPE model: added tokens, normalizer, words, merges. The readers of the file formats fill in the parts.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/tokenizer/added_tokens.h"
#include "data/tokenizer/bpe_model.h"
#include "data/tokenizer/decoder.h"
#include "data/tokenizer/normalizer.h"
#include "data/tokenizer/pre_tokenizer.h"
#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/vocab.h"

namespace hlat::tokenizer {

struct BpeParts {
  Vocab vocab;
  std::unique_ptr<BpeModel> model;
  AddedTokens raw;         // looked for in the text as it is
  AddedTokens normalized;  // looked for after normalization
  Normalizer normalizer;
  std::vector<SplitStep> steps;
  Decoder decoder;
  std::optional<int32_t> bos;
  std::optional<int32_t> eos;
  std::vector<bool> fallback;  // by id
  std::string kind;            // "byte-level BPE"
  uint64_t fingerprint = 0;
};

std::unique_ptr<Tokenizer> make_bpe_tokenizer(BpeParts parts);

}  // namespace hlat::tokenizer
