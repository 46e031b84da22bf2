#include "backend/cuda/attention/hopper_attention.h"

#include <algorithm>
#include <cmath>

namespace hlat {

namespace {

using hopper::BackwardCall;
using hopper::kKeys;
using Encode = decltype(&cuTensorMapEncodeTiled);

// Of the driver, which is not linked.
Encode encoder() {
  static const Encode found = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult result{};
#if CUDART_VERSION >= 12050
    const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &result);
#else
    const cudaError_t error = cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &result);
#endif
    if (error != cudaSuccess) cudaGetLastError();
    return error == cudaSuccess && result == cudaDriverEntryPointSuccess ? reinterpret_cast<Encode>(function) : nullptr;
  }();
  return found;
}

struct Gpu {
  int major = 0, multiprocessors = 0;
};

Gpu current_gpu() {
  Gpu d;
  int index = 0;
  if (cudaGetDevice(&index) != cudaSuccess) return {};
  cudaDeviceGetAttribute(&d.major, cudaDevAttrComputeCapabilityMajor, index);
  cudaDeviceGetAttribute(&d.multiprocessors, cudaDevAttrMultiProcessorCount, index);
  return d;
}

// How many units are worked on at a time. Few: their dq stays in the cache. But the blocks of a unit that run at the same time wait for
// each other at the beginning, so there must be few of them compared with the steps of each.
int together_of(int64_t blocks, int64_t group) {
  const int64_t least = 4 * current_gpu().multiprocessors / (blocks * group);
  return static_cast<int>(std::max<int64_t>(8, least));
}

// Tiles of `rows` tokens by 64 elements of one head, from (B, T, heads, E) with a token's row `row` elements long.
bool describe(CUtensorMap& map, const void* qkv, int64_t first_head, const OwnAttention& x, int64_t heads, int64_t row, int rows) {
  const auto size = [](int64_t n) { return static_cast<cuuint64_t>(n); };
  const cuuint64_t dims[4] = {size(x.head_dim), size(x.seq), size(heads), size(x.batch)};
  const cuuint64_t strides[3] = {size(row * 2), size(x.head_dim * 2), size(x.seq * row * 2)};
  const cuuint32_t box[4] = {64, static_cast<cuuint32_t>(rows), 1, 1}, steps[4] = {1, 1, 1, 1};
  auto* data = const_cast<char*>(static_cast<const char*>(qkv)) + first_head * x.head_dim * 2;
  return encoder()(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, data, dims, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                   CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

}  // namespace

bool hopper_attention_takes(int64_t head_dim) { return hopper_heads(head_dim) && current_gpu().major == 9 && encoder() != nullptr; }

cudaError_t hopper_attention_bwd(cudaStream_t stream, const OwnAttention& x, const float* rope, void* scratch) {
  const int64_t padded = hopper_padded(x.seq), stats = x.batch * x.heads * padded, row = (x.heads + 2 * x.kv_heads) * x.head_dim;
  const int queries = hopper_queries(x.head_dim);
  BackwardCall c{};
  c.seq = x.seq;
  c.padded = padded;
  c.heads = static_cast<int>(x.heads);
  c.kv_heads = static_cast<int>(x.kv_heads);
  c.units = static_cast<int>(x.batch * x.kv_heads);
  c.together = together_of(padded / kKeys, x.heads / x.kv_heads);
  c.scale = 1 / std::sqrt(static_cast<float>(x.head_dim));
  c.dq = static_cast<float*>(scratch);
  c.lse = c.dq + stats * x.head_dim;
  c.delta = c.lse + stats;
  c.dq_semaphore = reinterpret_cast<int*>(c.delta + stats);
  c.dqkv = x.dqkv;
  c.rope = rope;
  if (!describe(c.q, x.qkv, 0, x, x.heads, row, queries) || !describe(c.k, x.qkv, x.heads, x, x.kv_heads, row, kKeys) ||
      !describe(c.v, x.qkv, x.heads + x.kv_heads, x, x.kv_heads, row, kKeys) ||
      !describe(c.dout, x.dout, 0, x, x.heads, x.heads * x.head_dim, queries))
    return cudaErrorInvalidValue;
  const int64_t counters = hopper_counters(x.batch, x.heads, x.seq, x.head_dim);
  c.started = c.dq_semaphore + counters - 1;
  cudaError_t error = cudaMemsetAsync(c.dq_semaphore, 0, static_cast<size_t>(counters) * sizeof(int), stream);
  if (error == cudaSuccess) error = hopper::prepare(stream, x, c);
  if (error == cudaSuccess) error = hopper::go_over_keys(stream, x, c);
  return error == cudaSuccess ? hopper::finish(stream, x, c) : error;
}

}  // namespace hlat
