// Casts, sums, RoPE and SwiGLU.
#include "backend/cpu/kernels/declare.h"
#include "backend/cpu/kernels/philox.h"
#include "backend/cpu/kernels/simd.h"

namespace hlat::HLAT_ISA {
namespace {

void widen(float* dst, const b16* src, int64_t n) {
  lanes(n, [&](int64_t i, int64_t m) { store_part(dst + i, load_part(src + i, m), m); });
}
// By integer arithmetic in every set: a cast keeps values below 2^-126, which the conversion instruction drops.
void narrow(b16* dst, const float* src, int64_t n) {
  lanes(n, [&](int64_t i, int64_t m) {
    b16 out[kLanes];
    store_bits(out, bf16_bits(load_part(src + i, m)));
    std::memcpy(dst + i, out, static_cast<size_t>(m) * sizeof(b16));
  });
}

void narrow_stochastic(b16* dst, const float* src, int64_t n, int64_t first_element, const uint32_t* key, uint32_t step, uint32_t purpose) {
  NoiseReader noise(key, step, purpose);
  lanes(n, [&](int64_t i, int64_t m) {
    const vu bits = bf16_bits_stochastic(load_part(src + i, m), noise.at(first_element + i));
    b16 out[kLanes];
    store_bits(out, bits);
    std::memcpy(dst + i, out, static_cast<size_t>(m) * sizeof(b16));
  });
}

template <class T>
void add(void* y, const void* a, const void* b, int64_t n) {
  auto* out = static_cast<T*>(y);
  const auto* p = static_cast<const T*>(a);
  const auto* q = static_cast<const T*>(b);
  lanes(n, [&](int64_t i, int64_t m) { store_part(out + i, load_part(p + i, m) + load_part(q + i, m), m); });
}

template <class T>
double sum_wide(const void* x, int64_t n) {
  typedef double vd __attribute__((vector_size(kLanes * 8)));
  const auto* p = static_cast<const T*>(x);
  vd acc{};
  lanes(n, [&](int64_t i, int64_t m) { acc += __builtin_convertvector(load_part(p + i, m), vd); });
  double total = 0;
  for (int k = 0; k < kLanes; ++k) total += acc[k];
  return total;
}

// f32 within short runs, f64 across them.
template <class T>
double sum_squares(const void* x, int64_t n) {
  const auto* p = static_cast<const T*>(x);
  constexpr int64_t kRun = 4096;
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += kRun) {
    const int64_t count = n - begin < kRun ? n - begin : kRun;
    vf acc{};
    lanes(count, [&](int64_t i, int64_t m) {
      const vf v = load_part(p + begin + i, m);
      acc += v * v;
    });
    total += static_cast<double>(sum(acc));
  }
  return total;
}

// y_i = x_i c - x_{i+h} s, y_{i+h} = x_{i+h} c + x_i s, with h = E / 2.
template <class T>
void rope(void* qkv, const float* table, int64_t first_row, int64_t rows, int64_t seq, int64_t row, int64_t rotated_heads, int64_t head_dim,
          float sign) {
  const int64_t half = head_dim / 2;
  for (int64_t r = first_row; r < first_row + rows; ++r) {
    T* x = static_cast<T*>(qkv) + r * row;
    const float* cosine = table + (r % seq) * head_dim;
    const float* sine = cosine + half;
    for (int64_t h = 0; h < rotated_heads; ++h, x += head_dim) {
      lanes(half, [&](int64_t i, int64_t m) {
        const vf c = load_part(cosine + i, m), s = load_part(sine + i, m) * sign;
        const vf a = load_part(x + i, m), b = load_part(x + half + i, m);
        store_part(x + i, a * c - b * s, m);
        store_part(x + half + i, b * c + a * s, m);
      });
    }
  }
}

inline vf sigmoid(vf x) { return 1.0f / (1.0f + exp(-x)); }

template <class T>
void swiglu(void* y, const void* gu, int64_t rows, int64_t width) {
  for (int64_t r = 0; r < rows; ++r) {
    T* out = static_cast<T*>(y) + r * width;
    const T* gate = static_cast<const T*>(gu) + r * 2 * width;
    const T* up = gate + width;
    lanes(width, [&](int64_t i, int64_t m) {
      const vf g = load_part(gate + i, m);
      store_part(out + i, g * sigmoid(g) * load_part(up + i, m), m);
    });
  }
}

// d silu(g) = s (1 + g (1 - s)) with s = sigmoid(g)
template <class T>
void swiglu_bwd(void* dgu, const void* dy, const void* gu, int64_t rows, int64_t width) {
  for (int64_t r = 0; r < rows; ++r) {
    T* dgate = static_cast<T*>(dgu) + r * 2 * width;
    const T* d = static_cast<const T*>(dy) + r * width;
    const T* gate = static_cast<const T*>(gu) + r * 2 * width;
    lanes(width, [&](int64_t i, int64_t m) {
      const vf g = load_part(gate + i, m), u = load_part(gate + width + i, m), dv = load_part(d + i, m);
      const vf s = sigmoid(g);
      store_part(dgate + i, dv * u * (s * (1.0f + g * (1.0f - s))), m);
      store_part(dgate + width + i, dv * (g * s), m);
    });
  }
}

}  // namespace

void fill_elementwise(CpuKernels& k) {
  k.widen = widen;
  k.narrow = narrow;
  k.narrow_stochastic = narrow_stochastic;
  k.add[0] = add<float>;
  k.add[1] = add<b16>;
  k.sum[0] = sum_wide<float>;
  k.sum[1] = sum_wide<b16>;
  k.sum_squares[0] = sum_squares<float>;
  k.sum_squares[1] = sum_squares<b16>;
  k.rope[0] = rope<float>;
  k.rope[1] = rope<b16>;
  k.swiglu[0] = swiglu<float>;
  k.swiglu[1] = swiglu<b16>;
  k.swiglu_bwd[0] = swiglu_bwd<float>;
  k.swiglu_bwd[1] = swiglu_bwd<b16>;
}

}  // namespace hlat::HLAT_ISA
