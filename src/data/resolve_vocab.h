// What `model.vocab: auto` means: as many tokens as the data's tokenizer has, rounded up to a multiple of 64, which matrix kernels like
// and tensor parallel ranks can share. Every process finds the same number, since it reads the same file.
#pragma once

#include "config/config.h"

namespace hlat {

inline constexpr int64_t kVocabMultiple = 64;

// Fills in model.vocab where it is auto (0); else nothing is read.
void resolve_vocab(Config& config);

}  // namespace hlat
