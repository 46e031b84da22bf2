// The vector type of the kernel files. Kernel sources are compiled once per instruction set with HLAT_ISA naming the
// namespace; everything here has internal linkage, so that no copy built for a newer CPU can be linked into generic code.
// Vectors are GCC vector extensions of the widest register; the code is the same for all sets.
#pragma once

#include <cstdint>
#include <cstring>

namespace hlat::HLAT_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX2__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif

typedef float vf __attribute__((vector_size(kLanes * 4)));
typedef int32_t vi __attribute__((vector_size(kLanes * 4)));
typedef uint32_t vu __attribute__((vector_size(kLanes * 4)));
typedef uint16_t vh __attribute__((vector_size(kLanes * 2)));

using b16 = uint16_t;  // bf16 bits

// x - 0 is x for every x, so the compiler leaves a bare broadcast; 0 + x would turn -0 into 0 and cost an add.
inline vf set(float x) { return x - vf{}; }

inline vf load(const float* p) {
  vf v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline void store(float* p, vf v) { std::memcpy(p, &v, sizeof v); }

inline vf load(const b16* p) {
  vh h;
  std::memcpy(&h, p, sizeof h);
  const vu u = __builtin_convertvector(h, vu) << 16;
  return reinterpret_cast<vf>(u);
}

// One element.
inline float value(float x) { return x; }
inline float value(b16 x) {
  const uint32_t u = static_cast<uint32_t>(x) << 16;
  float f;
  std::memcpy(&f, &u, sizeof f);
  return f;
}

// Round to nearest even; NaN stays NaN.
inline vu bf16_bits(vf v) {
  const vu u = reinterpret_cast<vu>(v);
  const vu rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  const vu quiet = (u >> 16) | 0x40u;
  const vu is_nan = reinterpret_cast<vu>((u & 0x7fffffffu) > 0x7f800000u);
  return (rounded & ~is_nan) | (quiet & is_nan);
}
// Up with the probability of the distance; noise holds 16 random bits per lane. Infinity and NaN pass.
inline vu bf16_bits_stochastic(vf v, vu noise) {
  const vu u = reinterpret_cast<vu>(v);
  const vu special = reinterpret_cast<vu>((u & 0x7f800000u) == 0x7f800000u);
  return (((u + noise) >> 16) & ~special) | (bf16_bits(v) & special);
}
inline void store_bits(b16* p, vu bits) {
  const vh h = __builtin_convertvector(bits, vh);
  std::memcpy(p, &h, sizeof h);
}
#if defined(__AVX512BF16__)
inline void store(b16* p, vf v) {  // what f32 holds below 2^-126 becomes zero
  vh h;
  asm("vcvtneps2bf16 %1, %0" : "=v"(h) : "v"(v));
  std::memcpy(p, &h, sizeof h);
}
#else
inline void store(b16* p, vf v) { store_bits(p, bf16_bits(v)); }
#endif

// The first n lanes, the rest zero.
template <class T>
inline vf load_n(const T* p, int64_t n) {
  T buffer[kLanes] = {};
  std::memcpy(buffer, p, static_cast<size_t>(n) * sizeof(T));
  return load(buffer);
}
template <class T>
inline void store_n(T* p, vf v, int64_t n) {
  T buffer[kLanes];
  store(buffer, v);
  std::memcpy(p, buffer, static_cast<size_t>(n) * sizeof(T));
}

// Calls body(i, n) with n == kLanes for whole vectors and a last shorter one.
template <class Body>
inline void lanes(int64_t count, const Body& body) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) body(i, static_cast<int64_t>(kLanes));
  if (i < count) body(i, count - i);
}
template <class T>
inline vf load_part(const T* p, int64_t n) {
  return n == kLanes ? load(p) : load_n(p, n);
}
template <class T>
inline void store_part(T* p, vf v, int64_t n) {
  if (n == kLanes)
    store(p, v);
  else
    store_n(p, v, n);
}

inline vf select(vi mask, vf yes, vf no) { return mask ? yes : no; }
inline vf max(vf a, vf b) { return select(a > b, a, b); }

// Lane j takes lane j ^ S.
template <int S>
inline vf swap_lanes(vf v) {
  vi lane;
#pragma GCC unroll 16
  for (int j = 0; j < kLanes; ++j) lane[j] = j ^ S;
  return __builtin_shuffle(v, lane);
}
// Pairwise, in a fixed order.
template <int S = kLanes / 2>
inline float sum(vf v) {
  v += swap_lanes<S>(v);
  if constexpr (S > 1)
    return sum<S / 2>(v);
  else
    return v[0];
}
template <int S = kLanes / 2>
inline float max(vf v) {
  v = max(v, swap_lanes<S>(v));
  if constexpr (S > 1)
    return max<S / 2>(v);
  else
    return v[0];
}

// One stage of a butterfly: blocks of S lanes are exchanged between rows i and i + S.
template <int S = kLanes / 2>
inline void transpose(vf* row) {  // in place: row i, lane j becomes row j, lane i
  vi lane;
#pragma GCC unroll 16
  for (int j = 0; j < kLanes; ++j) lane[j] = j;
  const vi low = (lane & S) != 0 ? lane - S + kLanes : lane, high = (lane & S) != 0 ? lane + kLanes : lane + S;
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) {
    if (i & S) continue;
    const vf a = row[i], b = row[i + S];
    row[i] = __builtin_shuffle(a, b, low);
    row[i + S] = __builtin_shuffle(a, b, high);
  }
  if constexpr (S > 1) transpose<S / 2>(row);
}

// e^r 2^n = e^x for |r| <= ln(2) / 2, x finite: n is returned as floats.
inline vf exp_parts(vf x, vf& n) {
  const vf magic = set(12582912.0f);  // adding it rounds to an integer
  n = (x * 1.44269504088896341f + magic) - magic;
  const vf r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  vf p = set(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  return p * (r * r) + r + 1.0f;
}

// exp to about 2 ulp; 0 below -87.3, infinity above 88.7, NaN stays NaN.
inline vf exp(vf x) {
  const vf kLow = set(-87.3f), kHigh = set(88.7f);
  vf n;
  const vf p = exp_parts(select(x < kLow, kLow, select(x > kHigh, kHigh, x)), n);
  // 2^n in two factors: n reaches 128, which one exponent field does not hold.
  const vi ni = __builtin_convertvector(n, vi);
  const vi half = ni >> 1;
  const vf a = reinterpret_cast<vf>((half + 127) << 23), b = reinterpret_cast<vf>((ni - half + 127) << 23);
  return select(x < kLow, vf{}, select(x > kHigh, set(__builtin_inff()), p * a * b));
}

// The same where x is not above 0 but for rounding, as in a softmax: fewer steps. Below -87 it is 1e-38, not 0.
inline vf exp_nonpositive(vf x) {
  vf n;
  const vf p = exp_parts(max(set(-87.0f), x), n);  // in this order NaN stays
  // Unsigned: lanes that nobody reads may hold anything, and must not overflow.
  const vu scaled = reinterpret_cast<vu>(p) + (reinterpret_cast<vu>(__builtin_convertvector(n, vi)) << 23);
  return reinterpret_cast<vf>(scaled);
}

inline vf sqrt(vf v) {
#if defined(__AVX512F__)
  return reinterpret_cast<vf>(__builtin_ia32_sqrtps512_mask(v, v, static_cast<uint16_t>(-1), 4));
#elif defined(__AVX2__)
  return __builtin_ia32_sqrtps256(v);
#else
  return __builtin_ia32_sqrtps(v);
#endif
}

}  // namespace
}  // namespace hlat::HLAT_ISA
