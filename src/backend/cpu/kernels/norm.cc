// RMSNorm: y = x r w with r = 1 / sqrt(mean(x^2) + eps). Backward, with g = dy w and c = mean(g x) r^2:
// dx = r (g - x c), dw = sum over rows of dy x r.

#include "backend/cpu/kernels/declare.h"
#include "backend/cpu/kernels/simd.h"

namespace hlat::HLAT_ISA {
namespace {

template <class T>
float inverse_rms(const T* x, int64_t width, float eps) {
  vf a{}, b{};
  int64_t i = 0;
  for (; i + 2 * kLanes <= width; i += 2 * kLanes) {
    const vf u = load(x + i), v = load(x + i + kLanes);
    a += u * u;
    b += v * v;
  }
  lanes(width - i, [&](int64_t j, int64_t m) {
    const vf u = load_part(x + i + j, m);
    a += u * u;
  });
  return 1.0f / __builtin_sqrtf(sum(a + b) / static_cast<float>(width) + eps);
}

template <class T>
void normalize_row(T* y, const T* x, const T* w, int64_t width, float r) {
  lanes(width, [&](int64_t i, int64_t m) { store_part(y + i, load_part(x + i, m) * r * load_part(w + i, m), m); });
}

template <class T>
void rmsnorm(void* y, float* rstd, const void* x, const void* w, int64_t rows, int64_t width, float eps) {
  for (int64_t r = 0; r < rows; ++r) {
    const T* in = static_cast<const T*>(x) + r * width;
    rstd[r] = inverse_rms(in, width, eps);
    normalize_row(static_cast<T*>(y) + r * width, in, static_cast<const T*>(w), width, rstd[r]);
  }
}

template <class T>
void add_rmsnorm(void* sum_out, void* y, float* rstd, const void* x, const void* delta, const void* w, int64_t rows, int64_t width,
                 float eps) {
  for (int64_t r = 0; r < rows; ++r) {
    T* s = static_cast<T*>(sum_out) + r * width;
    const T* a = static_cast<const T*>(x) + r * width;
    const T* b = static_cast<const T*>(delta) + r * width;
    lanes(width, [&](int64_t i, int64_t m) { store_part(s + i, load_part(a + i, m) + load_part(b + i, m), m); });
    rstd[r] = inverse_rms(s, width, eps);
    normalize_row(static_cast<T*>(y) + r * width, s, static_cast<const T*>(w), width, rstd[r]);
  }
}

template <class T>
void rmsnorm_bwd(void* dx, float* dw_sum, const void* dy, const void* x, const void* w, const float* rstd, int64_t rows, int64_t width,
                 bool add_dx) {
  std::memset(dw_sum, 0, static_cast<size_t>(width) * sizeof(float));
  const T* weight = static_cast<const T*>(w);
  for (int64_t r = 0; r < rows; ++r) {
    T* out = static_cast<T*>(dx) + r * width;
    const T* d = static_cast<const T*>(dy) + r * width;
    const T* in = static_cast<const T*>(x) + r * width;
    vf dot{};
    lanes(width, [&](int64_t i, int64_t m) { dot += load_part(d + i, m) * load_part(weight + i, m) * load_part(in + i, m); });
    const float s = rstd[r];
    const float c = sum(dot) / static_cast<float>(width) * s * s;
    lanes(width, [&](int64_t i, int64_t m) {
      const vf dv = load_part(d + i, m), xv = load_part(in + i, m);
      store_part(dw_sum + i, load_part(dw_sum + i, m) + dv * xv * s, m);
      vf value = (dv * load_part(weight + i, m) - xv * c) * s;
      if (add_dx) value += load_part(out + i, m);
      store_part(out + i, value, m);
    });
  }
}

}  // namespace

void fill_norm(CpuKernels& k) {
  k.rmsnorm[0] = rmsnorm<float>;
  k.rmsnorm[1] = rmsnorm<b16>;
  k.add_rmsnorm[0] = add_rmsnorm<float>;
  k.add_rmsnorm[1] = add_rmsnorm<b16>;
  k.rmsnorm_bwd[0] = rmsnorm_bwd<float>;
  k.rmsnorm_bwd[1] = rmsnorm_bwd<b16>;
}

}  // namespace hlat::HLAT_ISA
