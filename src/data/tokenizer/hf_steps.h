// The normalizer and pre-tokenizer sections of tokenizer.json.
#pragma once

#include <vector>

#include "data/tokenizer/json_node.h"
#include "data/tokenizer/normalizer.h"
#include "data/tokenizer/pre_tokenizer.h"

namespace hlat::tokenizer {

Normalizer read_normalizer(const JsonNode& root);

struct PreTokenizerSection {
  std::vector<SplitStep> steps;
  bool byte_level = false;   // tokens are bytes in GPT-2's spelling
  bool space_marks = false;  // U+2581 is kept as a space from the unmark step on
};
PreTokenizerSection read_pre_tokenizer(const JsonNode& root);

}  // namespace hlat::tokenizer
