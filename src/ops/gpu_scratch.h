// How much scratch the GPU's ops take, as functions of the shape that need no GPU: the cuda backend asks them, and so does a plan for a GPU
// on a machine without one. What a library decides (cuDNN's workspace, the sort of cub) is recorded from a machine that has it: `recorded`
// values are estimates elsewhere, and a plan marks them so. Attention is in attention_shared.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "ops/gpu_facts.h"
#include "ops/ops.h"

namespace hlat {

inline constexpr size_t kGpuMatmulWorkspace = size_t{32} << 20;
// Splitting k takes a partial c per split; small products need less than the full workspace.
size_t gpu_matmul_scratch(const MatmulShape& s);

// Of a product of FP8: a and b in bf16, on a GPU that does not multiply FP8, then the product's own.
struct GpuFp8Scratch {
  size_t a = 0, b = 0, product = 0, total = 0;
};
GpuFp8Scratch gpu_matmul_fp8_scratch(const GpuFacts& gpu, const MatmulShape& s);

// Blocks of the norm's backward: four for each multiprocessor of a large GPU, eight of the smaller blocks that narrower rows have.
int64_t gpu_norm_parts(int64_t rows, int64_t width);
size_t gpu_rmsnorm_bwd_scratch(int64_t rows, int64_t width);

// Blocks of an update, or of the first pass of a sum: one per 2048 elements. Reads and writes mix best when blocks are short.
int64_t gpu_update_parts(int64_t elements);
size_t gpu_reduce_scratch(int64_t elements);

// The parts of embed_bwd's scratch: positions are sorted by table row, and the sorted list is cut into segments.
inline constexpr int64_t kGpuEmbedSegment = 32;
struct GpuEmbedScratch {
  size_t sort_bytes, keys, partials, total;
  GpuEmbedScratch(int64_t tokens, int64_t width, size_t sort);  // sort: what the sort takes
};

// Smallest number of equal parts of the batch whose score gradients stay within a bound, in cuDNN's deterministic backward.
int64_t cudnn_parts(const AttentionShape& s);

// Recorded.
size_t recorded_sort_scratch(int64_t keys);
size_t recorded_cudnn_scratch(const AttentionShape& s, bool backward);
inline constexpr const char* kRecordedOn = "one H200, CUDA 13.0, cuDNN 9.14";

}  // namespace hlat
