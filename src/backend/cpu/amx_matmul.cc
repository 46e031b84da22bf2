#include "backend/cpu/amx_matmul.h"

#include <algorithm>

namespace hlat {

namespace {

constexpr int64_t kPanel = 32;  // of kernels/amx_pack.h

// Packed chunks stay in the last-level cache; a chunk of B is packed once and meets all of A.
constexpr int64_t kChunkK = 4096, kChunkBytesA = int64_t{4} << 20, kChunkBytesB = int64_t{8} << 20;
// A block of C is one item of work: its panels of one run of k and its sums share the second-level cache.
constexpr int64_t kBlockM = 512, kBlockN = 256, kItemsPerThread = 3;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t whole(int64_t n) { return ceil_div(n, kPanel) * kPanel; }
// n in equal parts of at most `limit`, in whole panels; never nothing.
int64_t part(int64_t n, int64_t limit) {
  limit = std::max(kPanel, limit / kPanel * kPanel);
  return std::max(kPanel, whole(ceil_div(n, std::max<int64_t>(1, ceil_div(n, limit)))));
}

// Sizes of chunks and blocks, and where things lie in scratch, in bytes. A function of shape and threads.
struct Plan {
  int64_t kb, nb, mb, nc, mc;
  size_t a, b, sums, work, work_each, bytes;

  Plan(const MatmulShape& s, int threads) {
    constexpr auto kSize = static_cast<int64_t>(sizeof(uint16_t));
    kb = part(s.k, kChunkK);
    nb = part(s.n, kChunkBytesB / (kSize * kb));
    mb = part(s.m, kChunkBytesA / (kSize * kb));
    mc = part(mb, kBlockM);
    nc = part(nb, kBlockN);
    while (ceil_div(mb, mc) * ceil_div(nb, nc) < kItemsPerThread * threads && std::max(mc, nc) > 2 * kPanel)
      mc >= nc ? mc = part(mc, mc / 2) : nc = part(nc, nc / 2);
    size_t cursor = 0;
    const auto take = [&](int64_t count, size_t size) {
      const size_t begin = cursor;
      cursor += (static_cast<size_t>(count) * size + 63) / 64 * 64;
      return begin;
    };
    a = take(mb * kb, sizeof(uint16_t));
    b = take(nb * kb, sizeof(uint16_t));
    sums = take(s.c == DType::bf16 && s.k > kb ? s.m * s.n : 0, sizeof(float));
    work_each = static_cast<size_t>(mc * nc) * sizeof(float);
    work = take(threads, work_each);
    bytes = cursor;
  }
};

// The chunk at hand: rows, columns and values of k.
struct Chunk {
  int64_t m0, m, n0, n, k0, k;
  bool pack_a, pack_b;
};

class Product {
 public:
  Product(const CpuKernels& kernels, const Threads& threads, const Tensor& c, const Tensor& a, const Tensor& b, const MatmulShape& s,
          std::byte* scratch)
      : kernels_(kernels), threads_(threads), c_(c), a_(a), b_(b), s_(s), plan_(s, threads.count()), scratch_(scratch) {}

  void run() {
    for (int64_t k0 = 0; k0 == 0 || k0 < s_.k; k0 += plan_.kb)
      for (int64_t n0 = 0; n0 < s_.n; n0 += plan_.nb)
        for (int64_t m0 = 0; m0 < s_.m; m0 += plan_.mb) {
          const Chunk chunk{m0,
                            std::min(plan_.mb, s_.m - m0),
                            n0,
                            std::min(plan_.nb, s_.n - n0),
                            k0,
                            std::min(plan_.kb, s_.k - k0),
                            n0 == 0 || s_.m > plan_.mb,
                            m0 == 0};
          pack(chunk);
          multiply(chunk);
        }
  }

 private:
  uint16_t* packed_a() const { return reinterpret_cast<uint16_t*>(scratch_ + plan_.a); }
  uint16_t* packed_b() const { return reinterpret_cast<uint16_t*>(scratch_ + plan_.b); }

  void pack(const Chunk& t) const {
    const int64_t a_panels = t.pack_a ? ceil_div(t.m, kPanel) : 0, b_panels = t.pack_b ? ceil_div(t.n, kPanel) : 0;
    threads_.items(a_panels + b_panels, [&](int64_t i, int) {
      const bool is_a = i < a_panels;
      const int64_t first = (is_a ? i : i - a_panels) * kPanel, line = first + (is_a ? t.m0 : t.n0);
      const Tensor& from = is_a ? a_ : b_;
      GemmPackArgs args{};
      args.transposed = is_a ? s_.trans_a : s_.trans_b;
      args.dst = (is_a ? packed_a() : packed_b()) + first * whole(t.k);
      args.ld = from.stride[0];
      args.src = from.as<uint16_t>() + (is_a != args.transposed ? line * args.ld + t.k0 : t.k0 * args.ld + line);
      args.lines = std::min(kPanel, (is_a ? t.m : t.n) - first);
      args.k = t.k;
      (is_a ? kernels_.gemm_pack_a : kernels_.gemm_pack_b)(args);
    });
  }

  // Sums over several chunks of k wait in C itself when it is f32, else in scratch until the last chunk.
  void multiply(const Chunk& t) const {
    const int64_t rows = ceil_div(t.m, plan_.mc);
    const bool split = s_.c == DType::bf16 && s_.k > plan_.kb, last = t.k0 + t.k == s_.k;
    auto* sums = reinterpret_cast<float*>(scratch_ + plan_.sums);
    threads_.items(rows * ceil_div(t.n, plan_.nc), [&](int64_t i, int thread) {
      const int64_t m = i % rows * plan_.mc, n = i / rows * plan_.nc, at = (t.m0 + m) * s_.n + t.n0 + n;
      GemmBlockArgs args{};
      args.a = packed_a() + m * whole(t.k);
      args.b = packed_b() + n * whole(t.k);
      args.rows = std::min(plan_.mc, t.m - m);
      args.cols = std::min(plan_.nc, t.n - n);
      args.steps = ceil_div(t.k, kPanel);
      args.accumulate = s_.accumulate;
      args.work = reinterpret_cast<float*>(scratch_ + plan_.work + plan_.work_each * static_cast<size_t>(thread));
      if (split && !last) {
        args.c = sums + at;
        args.ldc = s_.n;
        args.accumulate = t.k0 > 0;
      } else {
        args.c = static_cast<std::byte*>(c_.data) + ((t.m0 + m) * c_.stride[0] + t.n0 + n) * static_cast<int64_t>(size_of(s_.c));
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
  Plan plan_;
  std::byte* scratch_;
};

}  // namespace

size_t amx_matmul_scratch(const MatmulShape& s, int threads) { return Plan(s, threads).bytes; }

void amx_matmul(const CpuKernels& kernels, const Threads& threads, Tensor c, Tensor a, Tensor b, const MatmulShape& s, Tensor scratch) {
  HLAT_CHECK(s.a == DType::bf16 && s.b == DType::bf16, "tile product of {} and {}", name_of(s.a), name_of(s.b));
  const size_t need = amx_matmul_scratch(s, threads.count());
  HLAT_CHECK(scratch.defined() && scratch.bytes() >= need, "tile product {} x {} x {}: scratch {} for {} bytes", s.m, s.n, s.k,
             scratch.str(), need);
  Product(kernels, threads, c, a, b, s, scratch.as<std::byte>()).run();
}

}  // namespace hlat
