// How many tokens a source has: its text is tokenized once, on several threads. Exact, and as slow as tokenizing.
#pragma once

#include "data/mixture.h"

namespace hlat {

// Of the documents in the mixture's split, their end tokens included. Counting ends early once there are `enough`. The source must have
// an end.
uint64_t count_tokens(const Mixture& mixture, size_t source, int threads, uint64_t enough = ~uint64_t{0});

}  // namespace hlat
