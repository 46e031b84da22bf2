// Tensors to FP8 and back: quantize stores rows and columns (fp8_store.cuh); a flat tensor is a multiple of 16 elements per thread, with
// its end one by one.
#include "backend/cuda/fp8_store.cuh"

namespace hlat {

namespace {

constexpr int kFlat = 16;  // elements of a thread

template <int N>
struct QuantizeSource {
  static constexpr int kPlanes = 1;
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
  const int64_t i = (int64_t{blockIdx.x} * kBlock + threadIdx.x) * kFlat;
  Fp8Encoder<F8, Count> encoder(scale);
  if (vectors && i + kFlat <= n) {
    float v[kFlat];
    uint32_t code[kFlat / 4];
    load(v, src + i);
    encoder.encode(code, v);
    *reinterpret_cast<uint4*>(dst + i) = make_uint4(code[0], code[1], code[2], code[3]);
  } else {
    for (int64_t j = i; j < i + kFlat && j < n; ++j) dst[j] = encoder.encode_one(widen(src[j]));
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
  const int64_t i = (int64_t{blockIdx.x} * kBlock + threadIdx.x) * kFlat;
  const float inverse = scale[1];
  if (vectors && i + kFlat <= n) {
    const uint4 codes = *reinterpret_cast<const uint4*>(x + i);
    const uint32_t word[4] = {codes.x, codes.y, codes.z, codes.w};
    float v[kFlat];
#pragma unroll
    for (int j = 0; j < kFlat; j += 2) {
      const float2 two = decode_two<F8>(word[j / 4] >> (j % 4 * 8) & 0xffffu);
      v[j] = two.x * inverse;
      v[j + 1] = two.y * inverse;
    }
    store(y + i, v);
  } else {
    for (int64_t j = i; j < i + kFlat && j < n; ++j) y[j] = narrow<bf16>(decode_two<F8>(x[j]).x * inverse);
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
