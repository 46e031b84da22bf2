// The weights of a block's linear layers, in the whole model.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "config/config.h"

namespace hlat {

struct LinearShape {
  std::string_view name;  // within its block
  int64_t outputs = 0, inputs = 0;
};
std::array<LinearShape, 4> linear_shapes(const ModelConfig& model);

}  // namespace hlat
