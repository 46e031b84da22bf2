#include "ops/gpu_scratch.h"

#include <algorithm>

namespace hlat {

namespace {
int64_t whole(int64_t n, int64_t of) { return (n + of - 1) / of; }
}  // namespace

size_t gpu_matmul_scratch(const MatmulShape& s) {
  if (s.m == 0 || s.n == 0 || s.k == 0) return 0;
  const size_t parts = (size_t{1} << 20) + static_cast<size_t>(s.m) * static_cast<size_t>(s.n) * 8 * sizeof(float);
  return std::min(kGpuMatmulWorkspace, parts);
}

GpuFp8Scratch gpu_matmul_fp8_scratch(const GpuFacts& gpu, const MatmulShape& s) {
  GpuFp8Scratch parts{.product = gpu_matmul_scratch(s)};
  if (!multiplies_fp8(gpu)) {
    const auto wide = [](int64_t rows, int64_t width) {
      return (static_cast<size_t>(rows * width) * size_of(DType::bf16) + kAlign - 1) / kAlign * kAlign;
    };
    parts.a = wide(s.m, s.k);
    parts.b = wide(s.n, s.k);
  }
  parts.total = parts.a + parts.b + parts.product;
  return parts;
}

int64_t gpu_norm_parts(int64_t rows, int64_t width) { return std::clamp<int64_t>(rows / 4, 1, 1024 < width && width <= 2048 ? 1056 : 528); }

size_t gpu_rmsnorm_bwd_scratch(int64_t rows, int64_t width) {
  return static_cast<size_t>(gpu_norm_parts(rows, width) * width) * sizeof(float);
}

int64_t gpu_update_parts(int64_t elements) { return std::clamp<int64_t>(whole(elements, 2048), 1, 16896); }

size_t gpu_reduce_scratch(int64_t elements) { return static_cast<size_t>(gpu_update_parts(elements)) * sizeof(double); }

GpuEmbedScratch::GpuEmbedScratch(int64_t tokens, int64_t width, size_t sort)
    : sort_bytes(static_cast<size_t>(whole(static_cast<int64_t>(sort), 256) * 256)),
      keys(static_cast<size_t>(whole(tokens, 64) * 64) * sizeof(uint32_t)),
      partials(static_cast<size_t>(whole(tokens, kGpuEmbedSegment) * width) * sizeof(float)),
      total(sort_bytes + 4 * keys + 2 * partials) {}

int64_t cudnn_parts(const AttentionShape& s) {
  constexpr int64_t kMost = int64_t{9} << 30;  // bytes of score gradients
  for (int64_t parts = 1; parts < s.batch; ++parts)
    if (s.batch % parts == 0 && s.batch / parts * s.heads * s.seq * s.seq * 2 <= kMost) return parts;
  return s.batch;
}

// cub's radix sort of pairs of 32 bits: one tile alone needs nothing; else second buffers of both, counts of four digits, and a row of
// counts for each tile.
size_t recorded_sort_scratch(int64_t keys) {
  constexpr int64_t kAlone = 4864, kTile = 8832, kCounts = 256 * sizeof(uint32_t);
  if (keys <= kAlone) return 1;
  const int64_t buffer = whole(keys * static_cast<int64_t>(sizeof(uint32_t)), 256) * 256;
  return static_cast<size_t>(2 * buffer + (4 + whole(keys, kTile)) * kCounts + 512);
}

// The forward takes next to nothing. The deterministic backward keeps the gradients of all scores, and those of q and a statistic in f32;
// a large batch is worked through in equal parts (cudnn_attention.h).
size_t recorded_cudnn_scratch(const AttentionShape& s, bool backward) {
  if (!backward) return 256;
  const int64_t padded = whole(s.seq, 128) * 128;
  const int64_t each = s.heads * (2 * padded * padded + 4 * s.seq * (s.head_dim + 1)) + (padded == s.seq ? 0 : 8);
  return static_cast<size_t>(s.batch / cudnn_parts(s) * each) + 256;
}

}  // namespace hlat
