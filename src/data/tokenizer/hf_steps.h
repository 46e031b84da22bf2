// The normalizer, pre-tokenizer and decoder sections of tokenizer.json.
#pragma once

#include <vector>

#include "data/tokenizer/added_tokens.h"
#include "data/tokenizer/decoder.h"
#include "data/tokenizer/json_node.h"
#include "data/tokenizer/normalizer.h"
#include "data/tokenizer/pre_tokenizer.h"
#include "data/tokenizer/vocab.h"

namespace hlat::tokenizer {

Normalizer read_normalizer(const JsonNode& root);

struct PreTokenizerSection {
  std::vector<SplitStep> steps;
  bool byte_level = false;   // tokens are bytes in GPT-2's spelling
  bool space_marks = false;  // U+2581 is kept as a space from the unmark step on
};
PreTokenizerSection read_pre_tokenizer(const JsonNode& root);

// `vocab` with the added tokens; of `added`, which were normalized, the text counts as normalization left it.
Decoder read_decoder(const JsonNode& root, const Vocab& vocab, const std::vector<AddedToken>& added);

}  // namespace hlat::tokenizer
