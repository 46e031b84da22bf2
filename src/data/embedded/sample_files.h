// The embedded corpus as files: stories in JSON lines, and a tokenizer for them that any reader of tokenizer.json understands.
#pragma once

#include <string>

#include "data/embedded/corpus.h"

namespace hlat {

// Documents [first, first + count) as {"text": "..."}, one a line.
std::string sample_lines(const EmbeddedCorpus& corpus, uint64_t first, uint64_t count);

// Byte-level BPE whose merges build each word of the corpus from its left end: a story has about a token for each word.
std::string sample_tokenizer(const EmbeddedCorpus& corpus);

}  // namespace hlat
