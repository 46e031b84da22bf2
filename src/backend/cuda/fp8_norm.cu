// RMSNorm stored in FP8. Columns need many rows at once, a row's statistic all of its columns: one kernel makes rstd (norm.cu, and x +
// delta), the second normalizes as it stores. x is read twice, the second time from the end, where it is still in the second-level cache;
// the result in bf16 goes to memory only where it is asked for, and then it is what is read again.
#include "backend/cuda/fp8_store.cuh"

namespace hlat {

namespace {

template <int N>
struct NormSource {
  static constexpr int kPlanes = 1;
  struct Row {
    Raw<bf16, N> x;
    float rstd;
  };
  using Column = Raw<bf16, N>;
  const bf16 *x, *w;
  const float* rstd;
  int64_t width;

  __device__ Column column(int64_t c) const {
    Column column;
    column.load(w + c);
    return column;
  }
  __device__ void read(Row& row, int64_t r, int64_t c) const {
    row.x.load(x + r * width + c);
    row.rstd = rstd[r];
  }
  __device__ void make(float (&v)[1][N], const Row& row, const Column& column, int64_t, int64_t) const {
    float weight[N];
    row.x.floats(v[0]);
    column.floats(weight);
#pragma unroll
    for (int j = 0; j < N; ++j) v[0][j] = v[0][j] * row.rstd * weight[j];
    round_bf16(v[0]);
  }
};

void store_norm(const Fp8Store& out, const Tensor& rstd, const Tensor& x, const Tensor& w, cudaStream_t stream) {
  store_fp8(out, x.dim(0), x.dim(1), aligned({x.data, w.data}), stream, [&](auto n) {
    return NormSource<n()>{x.as<const bf16>(), w.as<const bf16>(), rstd.as<const float>(), x.dim(1)};
  });
}

}  // namespace

void CudaOps::do_rmsnorm_fp8(const Fp8Store& out, Tensor y, Tensor rstd, Tensor x, Tensor w, double eps) {
  if (y.defined()) return Ops::do_rmsnorm_fp8(out, y, rstd, x, w, eps);
  do_rmsnorm({}, rstd, x, w, eps);
  store_norm(out, rstd, x, w, stream());
}

void CudaOps::do_add_rmsnorm_fp8(const Fp8Store& out, Tensor sum, Tensor y, Tensor rstd, Tensor x, Tensor delta, Tensor w, double eps) {
  if (y.defined()) return Ops::do_add_rmsnorm_fp8(out, sum, y, rstd, x, delta, w, eps);
  do_add_rmsnorm(sum, {}, rstd, x, delta, w, eps);
  store_norm(out, rstd, sum, w, stream());
}

}  // namespace hlat
