// The scales of FP8 products and the history they follow from, in a checkpoint: record "fp8" of its index, {tensor: {role: {"exponent",
// "history", "type"}}} for every linear layer of the model, whatever the layout. Weights of FP8 are not saved: they follow from their masters.
#pragma once

#include <string>

#include "checkpoint/index.h"
#include "model/executor.h"

namespace hlat {

// What this rank adds, as JSON: one rank of each pipeline stage has that of its layers. Empty: nothing.
std::string own_fp8(const Executor& executor);
// The parts of all ranks as one.
std::string join_fp8(const std::vector<std::string>& parts);

// After the tensors of a run that goes on were loaded: scales and history of the checkpoint, where it has those of all layers of this rank,
// and the weights that follow. False: they begin anew. Collective. DamagedCheckpoint where the record cannot be read.
bool restore_fp8(const CheckpointIndex& index, const Executor& executor);
inline constexpr int kFp8Version = 1;

}  // namespace hlat
