// Cross-entropy and its gradient where the whole vocabulary is here: one block per row, the row in registers between the sum of
// exponentials and the gradient, so every logit is read once and written once. Rows too long for that take the ops of loss.cu.
#include "backend/cuda/softmax.cuh"

namespace hlat {

namespace {

constexpr int kPieces = 8;  // 16-byte pieces of a row that a thread holds
constexpr unsigned kMostThreads = 1024;

template <class T, int N>
__global__ void __launch_bounds__(kMostThreads)
    ce_whole_kernel(T* logits, float* stats, const int32_t* targets, int64_t width, float scale) {
  __shared__ Softmax shared[kWarp];
  T* x = logits + blockIdx.x * width;
  const int step = static_cast<int>(blockDim.x) * N, begin = static_cast<int>(threadIdx.x) * N;
  Raw<T, N> keep[kPieces];
#pragma unroll
  for (int k = 0; k < kPieces; ++k)
    if (begin + k * step < width) keep[k].load(x + begin + k * step);
  const int32_t target = targets[blockIdx.x];
  const float target_logit = threadIdx.x == 0 && target >= 0 && target < width ? widen(x[target]) : 0.0f;  // before it is overwritten
  Softmax mine{-INFINITY, 0};
  float v[N];
#pragma unroll
  for (int k = 0; k < kPieces; ++k)
    if (begin + k * step < width) {
      keep[k].floats(v);
      take(mine, v);
    }
  mine = merge_block(mine, shared);
  const float factor = scale / mine.s;
#pragma unroll
  for (int k = 0; k < kPieces; ++k)
    if (begin + k * step < width) {
      keep[k].floats(v);
      const int hot = target - begin - k * step;  // the target's place in this piece, if it is in it
#pragma unroll
      for (int j = 0; j < N; ++j)  // the one-hot is taken off in f32, before rounding
        v[j] = target < 0 ? 0.0f : exp_nonpositive(v[j] - mine.m) * factor - (hot == j ? scale : 0.0f);
      store(x + begin + k * step, v);
    }
  if (threadIdx.x != 0) return;
  float* out = stats + int64_t{3} * blockIdx.x;
  out[0] = mine.m;
  out[1] = mine.s;
  out[2] = target_logit;
}

}  // namespace

void CudaOps::do_cross_entropy_whole(Tensor loss_sum, Tensor logits, Tensor stats, Tensor targets, double scale) {
  const int64_t rows = logits.dim(0), width = logits.dim(1);
  if (rows == 0) return;
  const int64_t vector = static_cast<int64_t>(16 / size_of(logits.dtype));
  if (width % vector != 0 || width > vector * kPieces * kMostThreads || !aligned({logits.data}))
    return Ops::do_cross_entropy_whole(loss_sum, logits, stats, targets, scale);
  with_type(logits.dtype, [&](auto t) {
    using T = decltype(t);
    launch(ce_whole_kernel<T, kVector<T>>, grid_of(rows, 1), row_threads(width / vector, kPieces), stream(), logits.as<T>(),
           stats.as<float>(), targets.as<int32_t>(), width, static_cast<float>(scale));
  });
  do_cross_entropy_finish(loss_sum, stats, targets);
}

}  // namespace hlat
