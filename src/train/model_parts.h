// The parts of the model that monitors tell apart: the embedding (0), the blocks (1 to L) and the head with its norm (L + 1). A tied head
// is the embedding.
#pragma once

#include <cstdint>
#include <string_view>

namespace hlat {

inline int64_t model_parts(int64_t layers) { return layers + 2; }
// Of a parameter, by its name.
int64_t model_part(std::string_view name, int64_t layers);

}  // namespace hlat
