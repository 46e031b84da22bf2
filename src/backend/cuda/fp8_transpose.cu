// The transpose of a matrix of bytes. A thread holds 16 x 16 of them, reads 16 of a row and writes 16 of a column; a warp has 128 x 64, so
// that reads are 64 bytes long and writes 128. What does not fit, by size or alignment, goes element by element.
#include "backend/cuda/fp8.cuh"

namespace hlat {

namespace {

constexpr int kSide = 16;
constexpr int kByteAcross = 4;                                                                  // lanes side by side
constexpr int kByteRows = kWarp / kByteAcross * kSide, kByteColumns = 2 * kByteAcross * kSide;  // of a block: two warps side by side

__global__ void __launch_bounds__(2 * kWarp) transpose_kernel(uint8_t* y, const uint8_t* x, int64_t rows, int64_t width, unsigned across) {
  const unsigned tile = gridDim.x - 1 - blockIdx.x, lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int64_t c = int64_t{tile % across} * kByteColumns + (warp * kByteAcross + lane % kByteAcross) * kSide;
  const int64_t r = int64_t{tile / across} * kByteRows + lane / kByteAcross * kSide;
  if (c >= width || r >= rows) return;
  uint32_t word[kSide][4];
#pragma unroll
  for (int i = 0; i < kSide; ++i) {
    const uint4 q = *reinterpret_cast<const uint4*>(x + (r + i) * width + c);
    word[i][0] = q.x, word[i][1] = q.y, word[i][2] = q.z, word[i][3] = q.w;
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) {
#pragma unroll
    for (int i = 0; i < kSide; i += 4) transpose_bytes(word[i][k], word[i + 1][k], word[i + 2][k], word[i + 3][k]);
#pragma unroll
    for (int j = 0; j < 4; ++j)
      *reinterpret_cast<uint4*>(y + (c + 4 * k + j) * rows + r) = make_uint4(word[j][k], word[4 + j][k], word[8 + j][k], word[12 + j][k]);
  }
}

__global__ void transpose_slow_kernel(uint8_t* y, const uint8_t* x, int64_t rows, int64_t width) {
  const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i < rows * width) y[i % width * rows + i / width] = x[i];
}

}  // namespace

void CudaOps::do_transpose(Tensor y, Tensor x) {
  const int64_t rows = x.dim(0), width = x.dim(1), across = ceil_div(width, int64_t{kByteColumns});
  auto* to = static_cast<uint8_t*>(y.data);
  const auto* from = static_cast<const uint8_t*>(x.data);
  if (rows % kSide == 0 && width % kSide == 0 && aligned({to, from}))
    launch(transpose_kernel, grid_of(across * ceil_div(rows, int64_t{kByteRows}), 1), 2 * kWarp, stream(), to, from, rows, width, across);
  else
    launch(transpose_slow_kernel, grid_of(x.numel(), kBlock), kBlock, stream(), to, from, rows, width);
}

}  // namespace hlat
