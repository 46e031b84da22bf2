// Tensors to FP8 and back: quantize stores rows and columns (fp8_store.cuh); a flat tensor is a multiple of 16 elements per thread, with
// its end one by one.
#include "backend/cuda/fp8_store.cuh"

namespace hlat {

namespace {

constexpr int kFlat = 16;  // elements of a thread

template <int N>
struct QuantizeSource {
  static constexpr int kPlanes = 1, kAhead = 8;
  using Row = Raw<bf16, N>;
  struct Column {};
  const bf16* x;
  int64_t width;

  __device__ Column column(int64_t) const { return {}; }
  __device__ void read(Row& row, int64_t r, int64_t c) const { row.load(x + r * width + c); }
  __device__ void make(float (&v)[1][N], const Row& row, const Column&, int64_t, int64_t) const { row.floats(v[0]); }
};

template <class T, class F8, bool Count>
__global__ void quantize_flat_kernel(uint8_t* dst, const T* src, int64_t n, const float* scale, double* seen, bool vectors) {
  constexpr int N = kVector<T>, kPieces = kFlat / N;
  const int64_t block = int64_t{blockIdx.x} * kBlock * kFlat, begin = block + threadIdx.x * N;
  Fp8Encoder<F8, Count> encoder(scale);
  if (vectors && block + kBlock * kFlat <= n) {
    Raw<T, N> in[kPieces];
#pragma unroll
    for (int k = 0; k < kPieces; ++k) in[k].load(src + begin + k * int{kBlock} * N);
#pragma unroll
    for (int k = 0; k < kPieces; ++k) {
      float v[N];
      uint32_t code[N / 4];
      in[k].floats(v);
      encoder.encode(code, v);
      put_codes(dst + begin + k * int{kBlock} * N, code);
    }
  } else {
    for (int64_t i = block + threadIdx.x; i < n && i < block + kBlock * kFlat; i += kBlock) dst[i] = encoder.encode_one(widen(src[i]));
  }
  encoder.publish(seen);
}

// Every value of FP8 is one of f16.
template <class F8>
__device__ inline float2 decode_two(uint32_t codes) {
  const __half2_raw half = __nv_cvt_fp8x2_to_halfraw2(static_cast<__nv_fp8x2_storage_t>(codes), kFp8Kind<F8>);
  return __half22float2(__half2(half));
}

template <class F8>
__global__ void dequantize_kernel(bf16* y, const uint8_t* x, int64_t n, const float* scale, bool vectors) {
  constexpr int N = kVector<bf16>, kPieces = kFlat / N;
  const int64_t block = int64_t{blockIdx.x} * kBlock * kFlat, begin = block + threadIdx.x * N;
  const float inverse = scale[kFp8Inverse];
  if (vectors && block + kBlock * kFlat <= n) {
    uint2 codes[kPieces];
#pragma unroll
    for (int k = 0; k < kPieces; ++k) codes[k] = *reinterpret_cast<const uint2*>(x + begin + k * int{kBlock} * N);
#pragma unroll
    for (int k = 0; k < kPieces; ++k) {
      float v[N];
#pragma unroll
      for (int j = 0; j < N; j += 2) {
        const float2 two = decode_two<F8>((j < 4 ? codes[k].x : codes[k].y) >> (j % 4 * 8) & 0xffffu);
        v[j] = two.x * inverse;
        v[j + 1] = two.y * inverse;
      }
      store(y + begin + k * int{kBlock} * N, v);
    }
  } else {
    for (int64_t i = block + threadIdx.x; i < n && i < block + kBlock * kFlat; i += kBlock)
      y[i] = narrow<bf16>(decode_two<F8>(x[i]).x * inverse);
  }
}

}  // namespace

void CudaOps::do_quantize(const Fp8Store& out, Tensor x) {
  store_fp8(out, x.dim(0), x.dim(1), aligned({x.data}), stream(), [&](auto n) {
    return QuantizeSource<n()>{x.as<const bf16>(), x.dim(1)};
  });
}

void CudaOps::do_quantize_flat(Tensor dst, Tensor src, Tensor scale, Tensor seen) {
  with_type(src.dtype, [&](auto t) {
    using T = decltype(t);
    with_fp8(dst.dtype, [&](auto f) {
      using F8 = decltype(f);
      with_count(seen, [&](auto count) {
        launch(quantize_flat_kernel<T, F8, count()>, grid_of(src.numel(), kBlock * kFlat), kBlock, stream(),
               static_cast<uint8_t*>(dst.data), src.as<T>(), src.numel(), scale.as<float>(), static_cast<double*>(seen.data),
               aligned({dst.data, src.data}));
      });
    });
  });
}

void CudaOps::do_dequantize(Tensor y, Tensor x, Tensor scale) {
  with_fp8(x.dtype, [&](auto f) {
    launch(dequantize_kernel<decltype(f)>, grid_of(x.numel(), kBlock * kFlat), kBlock, stream(), y.as<bf16>(),
           static_cast<const uint8_t*>(x.data), x.numel(), scale.as<float>(), aligned({y.data, x.data}));
  });
}

}  // namespace hlat
