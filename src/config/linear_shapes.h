// The weights of a block's linear layers, in the whole model and on a tensor-parallel rank.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "config/config.h"

namespace hlat {

struct LinearShape {
  std::string_view name;  // within its block
  int64_t outputs = 0, inputs = 0;
};
enum class LinearPlace : uint8_t { qkv, output, gate_up, down };
std::array<LinearShape, 4> linear_shapes(const ModelConfig& model);

// What a tensor-parallel rank has of a layer: outputs of qkv and gate_up, inputs of the others. tp is at most the heads.
LinearShape linear_shard(const ModelConfig& model, LinearPlace place, int tp_rank, int tp);

// The first tp rank whose shard of a layer FP8 products cannot take, of a layer that they take as a whole.
std::optional<int> fp8_cut(const ModelConfig& model, LinearPlace place, int tp);

}  // namespace hlat
