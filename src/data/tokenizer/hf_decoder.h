// The decoder section of tokenizer.json.
#pragma once

#include <vector>

#include "data/tokenizer/added_tokens.h"
#include "data/tokenizer/decoder.h"
#include "data/tokenizer/json_node.h"
#include "data/tokenizer/vocab.h"

namespace hlat::tokenizer {

// `vocab` with the added tokens; of `added`, which were normalized, the text counts as normalization left it.
Decoder read_decoder(const JsonNode& root, const Vocab& vocab, const std::vector<AddedToken>& added);

}  // namespace hlat::tokenizer
