// SwiGLU and its gradient, stored in FP8 as they are made: the result in bf16 goes to memory only where it is asked for.
#include "backend/cuda/fp8_store.cuh"
#include "backend/cuda/swiglu.cuh"

namespace hlat {

namespace {

template <int N>
struct SwigluSource {
  static constexpr int kPlanes = 1;
  struct Row {
    Raw<bf16, N> g, u;
  };
  struct Column {};
  bf16* y;  // may be null
  const bf16* gu;
  int64_t width;

  __device__ Column column(int64_t) const { return {}; }
  __device__ void read(Row& row, int64_t r, int64_t c) const {
    row.g.load(gu + r * 2 * width + c);
    row.u.load(gu + r * 2 * width + width + c);
  }
  __device__ void make(float (&v)[1][N], const Row& row, const Column&, int64_t r, int64_t c) const {
    float g[N];
    row.g.floats(g);
    row.u.floats(v[0]);
    swiglu(v[0], g);
    round_bf16(v[0]);
    if (y != nullptr) store(y + r * width + c, v[0]);
  }
};

// The planes are dg and du.
template <int N>
struct SwigluBwdSource {
  static constexpr int kPlanes = 2;
  struct Row {
    Raw<bf16, N> g, u, dy;
  };
  struct Column {};
  bf16* dgu;  // may be null, or gu: a thread reads what it writes before
  const bf16 *dy, *gu;
  int64_t width;

  __device__ Column column(int64_t) const { return {}; }
  __device__ void read(Row& row, int64_t r, int64_t c) const {
    row.g.load(gu + r * 2 * width + c);
    row.u.load(gu + r * 2 * width + width + c);
    row.dy.load(dy + r * width + c);
  }
  __device__ void make(float (&v)[2][N], const Row& row, const Column&, int64_t r, int64_t c) const {
    float g[N];
    row.g.floats(g);
    row.u.floats(v[0]);
    row.dy.floats(v[1]);
    swiglu_bwd(v[0], v[1], g);
    round_bf16(v[0]);
    round_bf16(v[1]);
    if (dgu == nullptr) return;
    store(dgu + r * 2 * width + c, v[0]);
    store(dgu + r * 2 * width + width + c, v[1]);
  }
};

}  // namespace

void CudaOps::do_swiglu_fp8(const Fp8Store& out, Tensor y, Tensor gu) {
  const int64_t width = gu.dim(1) / 2;
  store_fp8(out, gu.dim(0), width, aligned({y.data, gu.data}), stream(), [&](auto n) {
    return SwigluSource<n()>{y.as<bf16>(), gu.as<const bf16>(), width};
  });
}

void CudaOps::do_swiglu_bwd_fp8(const Fp8Store& out, Tensor dgu, Tensor dy, Tensor gu) {
  store_fp8(out, dy.dim(0), dy.dim(1), aligned({dgu.data, dy.data, gu.data}), stream(), [&](auto n) {
    return SwigluBwdSource<n()>{dgu.as<bf16>(), dy.as<const bf16>(), gu.as<const bf16>(), dy.dim(1)};
  });
}

}  // namespace hlat
