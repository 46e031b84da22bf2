// A precision policy as a row of words: that of train.precision, with the single choices of `precision` in their places. Nothing is left
// empty. param/precision.h makes types of it.
#pragma once

#include <string>
#include <string_view>

#include "config/config.h"

namespace hlat {

PrecisionConfig precision_row(PrecisionKind preset);
PrecisionConfig precision_row(const Config& config);

// Of a key of `precision` that is left empty: what its policy chooses. Empty for other keys.
std::string policy_choice(const Config& config, std::string_view key);

// For reports: "mixed", or "mixed with softmax=bf16, keyed_noise=false".
std::string precision_words(const Config& config);

}  // namespace hlat
