// What each tensor of a model's state is made of when a checkpoint is loaded: which of the saved tensors, and in which type it was. Loading
// into another precision policy, and a head of its own from a tied checkpoint, are decided here, and told in words, one line per kind of
// conversion. What cannot be is a problem, also in words, one line per tensor.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "checkpoint/index.h"
#include "param/param_store.h"

namespace hlat {

enum class LoadWhat : uint8_t {
  training,  // weights and optimizer state
  weights,   // weights, masters made of them; moments are zero. An untied head may be made of the embedding.
};

struct StateSources {
  static constexpr int32_t kZero = -1;                    // not read
  std::array<std::vector<int32_t>, kStateKinds> tensors;  // by kind, by parameter of the store: number in the index
  std::vector<uint8_t> used;                              // by number in the index: a parameter of that name is in this store
  std::vector<std::string> conversions, problems;

  int32_t of(StateKind kind, ParamId param) const { return tensors[static_cast<size_t>(kind)][static_cast<size_t>(param)]; }
};

// For the parameters of this rank.
StateSources find_sources(const CheckpointIndex& index, const ParamStore& params, LoadWhat what);
// Weights that no rank of the model uses, as problems. used: of all ranks together.
std::vector<std::string> unused_weights(const CheckpointIndex& index, const std::vector<uint8_t>& used);

// Between f32 and bf16: to bf16 to the nearest, ties to even.
void convert_elements(void* to, DType to_type, const void* from, DType from_type, int64_t count);

}  // namespace hlat
