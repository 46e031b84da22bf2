// The scales of FP8 products and the history they follow from, in a checkpoint: record "fp8" of its index, {tensor: {role: {"exponent",
// "history", "type"}}} for every linear layer of the model, whatever the layout. Weights of FP8 are not saved: they follow from their
// masters.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/index.h"
#include "model/executor.h"

namespace hlat {

// What this rank adds, as JSON: one rank of each pipeline stage has that of its layers. Empty: nothing, also where scales are yet to be
// measured, which a resume then does.
std::string own_fp8(const Executor& executor);
// The parts of all ranks as one.
std::string join_fp8(const std::vector<std::string>& parts);

// Of one operand of a layer.
struct Fp8Saved {
  int exponent = 0;  // of the scale, a power of two
  std::vector<float> history;
};
using Fp8Scales = std::map<std::string, std::array<Fp8Saved, kFp8Roles>>;  // by weight

// The record as this config has its types, of all layers of the model whose products are FP8: the same on all ranks. Nothing where the
// checkpoint has not all of them. DamagedCheckpoint where it cannot be read, UsageError where it is of a newer program.
std::optional<Fp8Scales> saved_fp8(const CheckpointIndex& index, const Config& config);
// After the tensors were loaded: scales and history, or that the first step measures them where there are none, and the weights that
// follow. Collective.
void restore_fp8(const std::optional<Fp8Scales>& scales, Executor& executor);
inline constexpr int kFp8Version = 1;

}  // namespace hlat
