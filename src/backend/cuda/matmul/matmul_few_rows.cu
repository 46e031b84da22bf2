// A block owns 16 rows of b; its warps share the terms: warp w takes the units w, w + 8, ... of 128 terms, and the warps' sums are added in
// order.
#include "backend/cuda/matmul/matmul_few_rows.cuh"

namespace hlat {

namespace few_rows {

namespace {

constexpr int kWarps = 8;
constexpr int kPitch = kTile + 4;  // of parts: the lanes of a warp then write to different banks

template <class Out, int kTiles>
__global__ void __launch_bounds__(kWarps * 32, kTiles == 1 ? 3 : 2) by_blocks(FewRowsMatmul x) {
  __shared__ float part[kWarps][kTiles * kColumns][kPitch];
  const int64_t first = int64_t{blockIdx.x} * kTile;
  const Place at(x, first);
  const int warp = mma::warp(), g = mma::lane() / 4, t = mma::lane() % 4;
  const auto* a = static_cast<const bf16*>(x.a) + g * x.lda + 8 * t;
  float sum[kTiles][4] = {};
  for (int64_t k = warp * kUnit; k < x.k; k += kWarps * kUnit) {
    Unit unit;
    unit.load(at, k, x.k);
    uint4 right[kSteps][kTiles];  // under way before the first product
#pragma unroll
    for (int j = 0; j < kSteps; ++j)
#pragma unroll
      for (int c = 0; c < kTiles; ++c) {
        const bool in = kColumns * c + g < x.m && k + 32 * j + 8 * t < x.k;
        right[j][c] = in ? *reinterpret_cast<const uint4*>(a + kColumns * c * x.lda + k + 32 * j) : make_uint4(0, 0, 0, 0);
      }
#pragma unroll
    for (int j = 0; j < kSteps; ++j)
#pragma unroll
      for (int c = 0; c < kTiles; ++c) unit.add(sum[c], j, right[j][c]);
  }
#pragma unroll
  for (int c = 0; c < kTiles; ++c)
#pragma unroll
    for (int i = 0; i < 4; ++i) part[warp][kColumns * c + 2 * t + i % 2][g + i / 2 * 8] = sum[c][i];
  __syncthreads();
  const int row = static_cast<int>(threadIdx.x) / kTile, column = static_cast<int>(threadIdx.x) % kTile;  // of c
  if (row >= kTiles * kColumns || row >= x.m || first + column >= x.n) return;
  float total = part[0][row][column];
#pragma unroll
  for (int w = 1; w < kWarps; ++w) total += part[w][row][column];
  store<Out>(x, row, first + column, total);
}

template <class Out>
void start(cudaStream_t stream, const FewRowsMatmul& x) {
  const auto blocks = static_cast<unsigned>((x.n + kTile - 1) / kTile);
  if (x.m <= kColumns)
    by_blocks<Out, 1><<<blocks, kWarps * 32, 0, stream>>>(x);
  else
    by_blocks<Out, 2><<<blocks, kWarps * 32, 0, stream>>>(x);
}

static_assert(kFewRows == 2 * kColumns && kFewRows * kTile == kWarps * 32);

}  // namespace

}  // namespace few_rows

bool few_rows_matmul_takes(const FewRowsMatmul& x) {
  const auto aligned = [](const void* p, int64_t ld, int64_t rows) {
    return reinterpret_cast<uintptr_t>(p) % 16 == 0 && (ld % 8 == 0 || rows == 1);
  };
  return x.m <= kFewRows && x.k % 8 == 0 && aligned(x.a, x.lda, x.m) && aligned(x.b, x.ldb, x.n);
}

cudaError_t few_rows_matmul(cudaStream_t stream, const FewRowsMatmul& x) {
  if (x.out_bf16)
    few_rows::start<few_rows::bf16>(stream, x);
  else
    few_rows::start<float>(stream, x);
  return cudaGetLastError();
}

}  // namespace hlat
