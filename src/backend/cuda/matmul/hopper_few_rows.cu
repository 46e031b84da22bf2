// Some tens of rows: now reading a costs as well, once per block, so blocks own many rows of b and few terms. A cluster of blocks owns 128
// rows, its blocks share the terms, and each of the 8 warps of a block works on 16 of the rows. The block's terms of a lie in shared memory
// in the order in which the lanes need them. At the end the blocks add up their parts, which they read from each other's shared memory, in
// order of the blocks.
#include "backend/cuda/hopper.cuh"
#include "backend/cuda/matmul/matmul_few_rows.cuh"

namespace hlat {

namespace few_rows {

namespace {

constexpr int kWarps = 8, kThreads = 32 * kWarps, kRows = kWarps * kTile;
constexpr int kPitch = kRows + 4;  // of parts: the lanes of a warp then write to different banks
constexpr int kEarly = 2;          // units of a that are waited for at first

__host__ __device__ inline int units_of(int64_t k) { return static_cast<int>((k + kUnit - 1) / kUnit); }
// Blocks of a cluster.
inline int ranks_of(int units) { return units > 32 ? 8 : units > 8 ? 4 : units > 2 ? 2 : 1; }

template <int kTiles>
size_t shared_bytes(int64_t k) {
  const int units = units_of(k), ranks = ranks_of(units), most = (units + ranks - 1) / ranks;
  const size_t terms = sizeof(uint4) * 32 * kSteps * kTiles * static_cast<size_t>(most), parts = sizeof(float) * kPitch * kColumns * kTiles;
  return terms > parts ? terms : parts;
}

// Units [begin, end) of a: step by step, tile by tile, 16 bytes for each lane; zeros past the rows and the terms.
template <int kTiles>
__device__ inline void load_terms(uint4* to, const FewRowsMatmul& x, int begin, int end) {
  const auto* a = static_cast<const bf16*>(x.a);
  const int count = (end - begin) * kSteps * kTiles * 32;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
    const int64_t row = i / 32 % kTiles * kColumns + i % 32 / 4, k = int64_t{begin} * kUnit + i / (32 * kTiles) * 32 + i % 4 * 8;
    const bool real = row < x.m && k < x.k;
    mma::copy_piece(to + i, a + (real ? row * x.lda + k : 0), real);
  }
  mma::copies_commit();
}

template <class Out, int kTiles>
__global__ void __launch_bounds__(kThreads, kTiles <= 4 ? 2 : 1) by_clusters(FewRowsMatmul x) {
  extern __shared__ __align__(16) unsigned char shared[];
  auto* terms = reinterpret_cast<uint4*>(shared);
  auto* part = reinterpret_cast<float*>(shared);
  const int rank = static_cast<int>(hopper::cluster_rank()), ranks = static_cast<int>(hopper::cluster_size());
  const int units = units_of(x.k), begin = rank * units / ranks, end = (rank + 1) * units / ranks, early = min(begin + kEarly, end);
  const int64_t first = int64_t{blockIdx.x} / ranks * kRows;
  const int warp = mma::warp(), lane = mma::lane();
  const Place at(x, first + warp * kTile);
  float sum[kTiles][4] = {};
  Unit now, next;
  next.load(at, int64_t{begin} * kUnit, x.k);
  load_terms<kTiles>(terms, x, begin, early);
  load_terms<kTiles>(terms + (early - begin) * kSteps * kTiles * 32, x, early, end);
  for (int u = begin; u < end; ++u) {
    now = next;
    if (u + 1 < end) next.load(at, int64_t{u + 1} * kUnit, x.k);
    if (u == begin) {
      mma::copies_wait<1>();
      __syncthreads();
    } else if (u == early) {
      mma::copies_wait<0>();
      __syncthreads();
    }
    const uint4* a = terms + (u - begin) * kSteps * kTiles * 32 + lane;
#pragma unroll
    for (int j = 0; j < kSteps; ++j)
#pragma unroll
      for (int c = 0; c < kTiles; ++c) now.add(sum[c], j, a[(j * kTiles + c) * 32]);
  }
  __syncthreads();  // the terms were read
#pragma unroll
  for (int c = 0; c < kTiles; ++c)
#pragma unroll
    for (int i = 0; i < 4; ++i) part[(kColumns * c + lane % 4 * 2 + i % 2) * kPitch + warp * kTile + lane / 4 + i / 2 * 8] = sum[c][i];
  hopper::cluster_sync();
  for (int i = rank * kThreads + static_cast<int>(threadIdx.x); i < kRows * static_cast<int>(x.m); i += ranks * kThreads) {
    const int row = i / kRows, column = i % kRows;
    if (first + column >= x.n) continue;
    float total = 0;
    for (int r = 0; r < ranks; ++r) total += hopper::load_remote(hopper::shared_address(part + row * kPitch + column), r);
    store<Out>(x, row, first + column, total);
  }
  hopper::cluster_leave();
}

template <class Out, int kTiles>
cudaError_t start(cudaStream_t stream, const FewRowsMatmul& x) {
  const size_t bytes = shared_bytes<kTiles>(x.k);
  const auto ranks = static_cast<unsigned>(ranks_of(units_of(x.k)));
  const auto clusters = static_cast<unsigned>((x.n + kRows - 1) / kRows);
  const cudaError_t error =
      cudaFuncSetAttribute(by_clusters<Out, kTiles>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  if (error != cudaSuccess) return error;
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = ranks;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(clusters * ranks);
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = bytes;
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, by_clusters<Out, kTiles>, x);
}

template <class Out>
cudaError_t start(cudaStream_t stream, const FewRowsMatmul& x) {
  if (x.m <= 2 * kColumns) return start<Out, 2>(stream, x);
  return x.m <= 4 * kColumns ? start<Out, 4>(stream, x) : start<Out, 8>(stream, x);
}

}  // namespace

}  // namespace few_rows

bool hopper_few_rows_takes(const FewRowsMatmul& x) {
  int device = 0, major = 0, shared = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return false;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  FewRowsMatmul fewer = x;
  fewer.m = x.m < kFewRows ? x.m : kFewRows;
  const size_t bytes = x.m <= 32 ? few_rows::shared_bytes<4>(x.k) : few_rows::shared_bytes<8>(x.k);
  return major == 9 && x.m <= kHopperFewRows && x.k > 0 && bytes <= static_cast<size_t>(shared) && few_rows_matmul_takes(fewer);
}

cudaError_t hopper_few_rows(cudaStream_t stream, const FewRowsMatmul& x) {
  return x.out_bf16 ? few_rows::start<few_rows::bf16>(stream, x) : few_rows::start<float>(stream, x);
}

}  // namespace hlat
