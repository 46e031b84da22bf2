// Tokenizer that goes from text to ids in steps: added tokens, normalizer, words, a model of words. The readers of the file formats
// fill in the parts.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/tokenizer/added_tokens.h"
#include "data/tokenizer/decoder.h"
#include "data/tokenizer/normalizer.h"
#include "data/tokenizer/pre_tokenizer.h"
#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/vocab.h"
#include "data/tokenizer/word_model.h"

namespace hlat::tokenizer {

struct PipelineParts {
  Vocab vocab;
  std::unique_ptr<WordModel> model;
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
  std::vector<std::string> warnings;
};

std::unique_ptr<Tokenizer> make_pipeline_tokenizer(PipelineParts parts);

}  // namespace hlat::tokenizer
