// Reductions of whole tensors to one number each, many tensors in one launch; shared by the files that reduce (reduce.cu, adamw.cu).
// Tensor i has blocks [first[i], first[i + 1]) of the grid; each leaves its part in scratch, and a block per tensor adds them.
#pragma once

#include "backend/cuda/device.cuh"

namespace hlat {

// Blocks of the first pass: one per 2048 elements, up to eight for each multiprocessor of a large GPU.
inline int64_t reduce_parts(int64_t elements) { return std::clamp<int64_t>(ceil_div(elements, 2048), 1, 1056); }

constexpr int kBatch = 32;  // tensors of one launch: what fits into the arguments of a kernel

// What is to be folded: parts [first[i], first[i + 1]) into out[i].
struct Fold {
  double* out[kBatch];
  const double* parts;
  int first[kBatch + 1];
  int count;
};

// out = the sum of the parts, in an order that depends on their count alone.
void fold_parts(const Fold& fold, cudaStream_t stream);

// The tensor that this block works on, and its place among the blocks of that tensor.
struct Share {
  int item, block, blocks;
};
__device__ inline Share share_of(const int (&first)[kBatch + 1], int count) {
  int item = 0;
  const int block = static_cast<int>(blockIdx.x);
  while (item + 1 < count && block >= first[item + 1]) ++item;
  return {item, block - first[item], first[item + 1] - first[item]};
}

}  // namespace hlat
