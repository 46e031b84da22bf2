// The scales of FP8 tensors from what was seen, a thread per tensor.
#include "backend/cuda/device.cuh"

namespace hlat {

namespace {

// The largest e with m * 2^e <= limit, both above 0.
__device__ inline int scale_exponent(float m, float limit) {
  int of_m, of_limit;
  const float part = frexpf(m, &of_m), limit_part = frexpf(limit, &of_limit);
  return min(max(of_limit - of_m - (part > limit_part ? 1 : 0), -kFp8Exponent), kFp8Exponent);
}

__global__ void fp8_scales_kernel(float* scale, float* history, const Fp8Seen* seen, const float* limit, const AdamwStep* step,
                                  const float* clip, int64_t units, int64_t ranks) {
  const int64_t u = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (u >= units || (clip != nullptr && isnan(*clip))) return;
  double now = 0;
  for (int64_t p = 0; p < ranks; ++p) {
    const double largest = seen[p * units + u].largest;
    if (!(largest <= now)) now = largest;
    if (isnan(now)) return;
  }
  if (isinf(now)) return;
  float* past = history + u * kFp8History;
  past[(static_cast<int64_t>(step->number) - 1) % kFp8History] = static_cast<float>(now);
  float most = 0;
  for (int64_t i = 0; i < kFp8History; ++i) most = max_or_nan(most, past[i]);
  if (!(most > 0) || isinf(most)) return;
  const int e = scale_exponent(most, limit[u]);
  scale[u * kFp8Scale] = ldexpf(1.0f, e);
  scale[u * kFp8Scale + kFp8Inverse] = ldexpf(1.0f, -e);
}

__global__ void fp8_reset_kernel(double* reset, const float* clip, int64_t count) {
  const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i < count && (clip == nullptr || !isnan(*clip))) reset[i] = 0;
}

}  // namespace

// What is reset may lie in seen: it is done after all of that was read.
void CudaOps::do_fp8_scales(Tensor scale, Tensor history, Tensor seen, Tensor limit, Tensor step, Tensor clip, Tensor reset) {
  const int64_t units = limit.dim(0);
  launch(fp8_scales_kernel, grid_of(units, kBlock), kBlock, stream(), scale.as<float>(), history.as<float>(), seen.as<const Fp8Seen>(),
         limit.as<float>(), step.as<const AdamwStep>(), clip.as<const float>(), units, seen.dim(0));
  if (reset.defined())
    launch(fp8_reset_kernel, grid_of(reset.numel(), kBlock), kBlock, stream(), reset.as<double>(), clip.as<const float>(), reset.numel());
}

}  // namespace hlat
