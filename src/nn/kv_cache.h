// What a pass over tokens with cached keys and values hands to the layers: where its tokens stand in their texts, and where keys and values
// go and lie (see KvSegment in ops/ops.h). All tensors are on the device.
#pragma once

#include <vector>

#include "ops/ops.h"

namespace hlat {

struct KvPass {
  Tensor positions, slots;     // (N) i32
  Tensor segments;             // (S, kKvSegment) i32
  std::vector<Tensor> layers;  // the caches (C, 2KE), by layer of the whole model; undefined for those of other ranks
  CacheShape shape;            // with this rank's heads
};

}  // namespace hlat
