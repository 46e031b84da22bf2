#include "backend/cpu/amx_matmul.h"

#include <algorithm>

#include "base/ceil_div.h"

namespace hlat {

namespace {

constexpr int64_t kPanel = 32;  // of kernels/amx_pack.h

// A chunk of B is packed by all threads and stays in the last-level cache. A thread packs a block of rows of A for itself, into
// its second-level cache, and multiplies it with the whole chunk: every operand is packed once and only B travels.
constexpr int64_t kChunkK = 4096, kChunkBytesB = int64_t{8} << 20, kBlockBytesA = int64_t{1} << 20, kBlockM = 512;
constexpr int64_t kPackLines = 4 * kPanel;  // columns of B in one item of packing
// With few rows, blocks are made smaller down to kLeastM for all threads to have work, then the columns are cut too.
constexpr int64_t kItemsPerThread = 3, kLeastM = 128, kLeastN = 128;

int64_t whole(int64_t n) { return ceil_div(n, kPanel) * kPanel; }
// n in equal parts of at most `limit`, in whole panels; never nothing.
int64_t part(int64_t n, int64_t limit) {
  limit = std::max(kPanel, limit / kPanel * kPanel);
  return std::max(kPanel, whole(ceil_div(n, std::max<int64_t>(1, ceil_div(n, limit)))));
}

// Sizes of chunks and blocks, and where things lie in scratch, in bytes. A function of shape and threads.
struct Blocking {
  int64_t kb, nb, mc, nc;
  size_t b, sums, a, a_each, bytes;

  Blocking(const MatmulShape& s, int threads) {
    constexpr auto kSize = static_cast<int64_t>(sizeof(uint16_t));
    const int64_t items = kItemsPerThread * threads;
    kb = part(s.k, kChunkK);
    nb = part(s.n, kChunkBytesB / (kSize * kb));
    mc = part(s.m, std::min(kBlockM, kBlockBytesA / (kSize * kb)));
    if (threads > 1) mc = std::min(mc, part(s.m, std::max(kLeastM, s.m / items)));
    const int64_t rows = ceil_div(s.m, mc);
    nc = threads == 1 || rows >= items ? nb : part(nb, std::max(kLeastN, nb * rows / items));
    size_t cursor = 0;
    const auto take = [&](int64_t count, size_t size) {
      const size_t begin = cursor;
      cursor += (static_cast<size_t>(count) * size + 63) / 64 * 64;
      return begin;
    };
    b = take(nb * kb, sizeof(uint16_t));
    sums = take(s.c == DType::bf16 && s.k > kb ? s.m * s.n : 0, sizeof(float));
    a_each = static_cast<size_t>(mc * kb) * sizeof(uint16_t);
    a = take(threads, a_each);
    bytes = cursor;
  }
};

// Columns of B and values of k at hand.
struct Chunk {
  int64_t n0, n, k0, k;
};

class Product {
 public:
  Product(const CpuKernels& kernels, const Threads& threads, const Tensor& c, const Tensor& a, const Tensor& b, const MatmulShape& s,
          std::byte* scratch)
      : kernels_(kernels), threads_(threads), c_(c), a_(a), b_(b), s_(s), blocking_(s, threads.count()), scratch_(scratch) {}

  void run() {
    for (int64_t k0 = 0; k0 < s_.k; k0 += blocking_.kb)
      for (int64_t n0 = 0; n0 < s_.n; n0 += blocking_.nb) {
        const Chunk chunk{n0, std::min(blocking_.nb, s_.n - n0), k0, std::min(blocking_.kb, s_.k - k0)};
        pack_b(chunk);
        multiply(chunk);
      }
  }

 private:
  uint16_t* packed_b() const { return reinterpret_cast<uint16_t*>(scratch_ + blocking_.b); }

  void pack_b(const Chunk& t) const {
    threads_.items(ceil_div(t.n, kPackLines), [&](int64_t i, int) {
      const int64_t first = i * kPackLines, n = t.n0 + first;
      GemmPackArgs args{};
      args.dst = packed_b() + first * whole(t.k);
      args.ld = b_.stride[0];
      args.transposed = s_.trans_b;
      args.src = b_.as<uint16_t>() + (s_.trans_b ? n * args.ld + t.k0 : t.k0 * args.ld + n);
      args.lines = std::min(kPackLines, t.n - first);
      args.k = t.k;
      kernels_.gemm_pack_b(args);
    });
  }

  void pack_a(uint16_t* dst, const Chunk& t, int64_t m, int64_t rows) const {
    GemmPackArgs args{};
    args.dst = dst;
    args.ld = a_.stride[0];
    args.transposed = s_.trans_a;
    args.src = a_.as<uint16_t>() + (s_.trans_a ? t.k0 * args.ld + m : m * args.ld + t.k0);
    args.lines = rows;
    args.k = t.k;
    kernels_.gemm_pack_a(args);
  }

  // Sums over several chunks of k wait in C itself when it is f32, else in scratch until the last chunk.
  void multiply(const Chunk& t) const {
    const int64_t columns = ceil_div(t.n, blocking_.nc);
    const bool split = s_.c == DType::bf16 && s_.k > blocking_.kb, last = t.k0 + t.k == s_.k;
    auto* sums = reinterpret_cast<float*>(scratch_ + blocking_.sums);
    threads_.items(ceil_div(s_.m, blocking_.mc) * columns, [&](int64_t i, int thread) {
      const int64_t m = i / columns * blocking_.mc, n = i % columns * blocking_.nc, at = m * s_.n + t.n0 + n;
      auto* packed_a = reinterpret_cast<uint16_t*>(scratch_ + blocking_.a + blocking_.a_each * static_cast<size_t>(thread));
      GemmBlockArgs args{};
      args.rows = std::min(blocking_.mc, s_.m - m);
      pack_a(packed_a, t, m, args.rows);
      args.a = packed_a;
      args.b = packed_b() + n * whole(t.k);
      args.cols = std::min(blocking_.nc, t.n - n);
      args.steps = ceil_div(t.k, kPanel);
      if (split && !last) {
        args.c = sums + at;
        args.ldc = s_.n;
        args.accumulate = t.k0 > 0;
      } else {
        args.c = static_cast<std::byte*>(c_.data) + (m * c_.stride[0] + t.n0 + n) * static_cast<int64_t>(size_of(s_.c));
        args.ldc = c_.stride[0];
        args.c_bf16 = s_.c == DType::bf16;
        args.accumulate = s_.accumulate || (!split && t.k0 > 0);
        if (split) args.start = sums + at, args.start_row = s_.n;
      }
      kernels_.gemm_block(args);
    });
  }

  const CpuKernels& kernels_;
  const Threads& threads_;
  const Tensor &c_, &a_, &b_;
  const MatmulShape& s_;
  Blocking blocking_;
  std::byte* scratch_;
};

}  // namespace

size_t amx_matmul_scratch(const MatmulShape& s, int threads) { return Blocking(s, threads).bytes; }

void amx_matmul(const CpuKernels& kernels, const Threads& threads, Tensor c, Tensor a, Tensor b, const MatmulShape& s, Tensor scratch) {
  HLAT_CHECK(s.a == DType::bf16 && s.b == DType::bf16, "tile product of {} and {}", name_of(s.a), name_of(s.b));
  const size_t need = amx_matmul_scratch(s, threads.count());
  HLAT_CHECK(scratch.defined() && scratch.bytes() >= need, "tile product {} x {} x {}: scratch {} for {} bytes", s.m, s.n, s.k,
             scratch.str(), need);
  Product(kernels, threads, c, a, b, s, scratch.as<std::byte>()).run();
}

}  // namespace hlat
