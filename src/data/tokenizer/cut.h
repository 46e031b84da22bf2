// Where a document can be cut without changing an id.
#pragma once

#include <cstddef>
#include <string_view>

#include "data/tokenizer/bpe_tokenizer.h"

namespace hlat::tokenizer {

// Encoder::cut for these parts.
size_t find_cut(const BpeParts& parts, std::string_view text, size_t limit);

}  // namespace hlat::tokenizer
