// Names of parameters that more than their layer knows: a tied model has the first alone and uses it as the second.
#pragma once

#include <string_view>

namespace hlat {

inline constexpr std::string_view kEmbeddingName = "embedding";
inline constexpr std::string_view kHeadName = "head.output";

}  // namespace hlat
