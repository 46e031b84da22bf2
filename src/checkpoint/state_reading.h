// Reads tensors from a checkpoint into device memory. Threads read, verify and convert; the calling thread uploads, since a device takes
// copies from one. Memory is two chunks per thread besides the reader's cache.
#pragma once

#include <vector>

#include "checkpoint/checkpoint_reader.h"
#include "ops/device.h"

namespace hlat {

struct TensorToRead {
  Tensor to;            // (count), on the device; f32 or bf16
  int32_t tensor = 0;   // number in the index
  ElementMap map = {};  // element e of `to` is global element map.global(e)
};

// What the reader throws comes out, when all threads have ended.
void read_tensors(CheckpointReader& reader, const std::vector<TensorToRead>& tensors, Device& device, int threads);

}  // namespace hlat
