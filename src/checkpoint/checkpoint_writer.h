// Makes a checkpoint of weights alone from tensors that come one after the other, in bounded memory: imports and averages.
// Files hold at most a given size each.
#pragma once

#include <filesystem>
#include <functional>

#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/index.h"

namespace hlat {

// Puts elements [first, first + count) of tensor number `tensor` to `to`, in that tensor's type.
using TensorContent = std::function<void(int32_t tensor, int64_t first, int64_t count, void* to)>;

// `index` has all but files: tensors, run, step, config, records. Written to PARENT/step_N; the finished folder is returned. `done` is told
// about bytes as they pass.
std::filesystem::path write_checkpoint(const std::filesystem::path& parent, CheckpointIndex index, const TensorContent& content,
                                       uint64_t max_file_bytes, const std::function<void(uint64_t)>& done = {});

}  // namespace hlat
