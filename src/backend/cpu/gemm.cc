#include "backend/cpu/gemm.h"

#include "backend/cpu/cpu_ops.h"

namespace hlat {

namespace {

constexpr int64_t kDepth = 384;   // k values of a block: one panel of A and one of B stay in the first-level cache
constexpr int64_t kRowsMax = 240; // rows of A packed at a time, for the second level
constexpr int64_t kColsMax = 4096;

int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

}  // namespace

struct CpuGemm::Blocks {
  int64_t depth, rows, cols;              // largest block in each direction, whole panels
  int64_t a_each, a_begin, c_begin, total;  // floats
  bool split_rows;                        // threads share rows of C; otherwise columns

  Blocks(const MatmulShape& s, const CpuKernels& k, int threads) {
    const int64_t blocks = (s.k + kDepth - 1) / kDepth;  // even blocks, no short rest
    depth = std::min(round_up((s.k + blocks - 1) / blocks, 16), s.k);
    cols = round_up(std::min(kColsMax, s.n), k.gemm_cols);
    split_rows = s.m >= int64_t{2} * threads * k.gemm_rows || s.m >= s.n;
    const int64_t share = split_rows ? (s.m + threads - 1) / threads : s.m;
    rows = round_up(std::min(kRowsMax, share + k.gemm_rows), k.gemm_rows);
    a_each = round_up(rows * depth, 16);
    a_begin = round_up(cols * depth, 16);
    c_begin = a_begin + a_each * threads;
    total = c_begin + (s.c == DType::bf16 ? s.m * s.n : 0);
  }
};

size_t CpuGemm::scratch(const MatmulShape& s) const { return static_cast<size_t>(Blocks(s, kernels_, threads_.count()).total) * sizeof(float); }

void CpuGemm::pack_b(const Tensor& b, const MatmulShape& s, const Blocks&, int64_t first_col, int64_t cols, int64_t first_k, int64_t depth,
                     float* base) const {
  const int64_t width = kernels_.gemm_cols, panels = (cols + width - 1) / width;
  threads_.ranges(panels, 1, [&](int64_t begin, int64_t end) {
    const int64_t line = begin * width, row = b.stride[0];
    const GemmPackArgs args{.dst = base + line * depth,
                            .src = at(b, s.trans_b ? (first_col + line) * row + first_k : first_k * row + first_col + line),
                            .row = row,
                            .lines = std::min(cols, end * width) - line,
                            .depth = depth,
                            .k_contiguous = s.trans_b};
    kernels_.gemm_pack_b[elem(b.dtype)](args);
  });
}

void CpuGemm::multiply(float* c, int64_t ldc, const Tensor& a, const MatmulShape& s, const Blocks& cut, int64_t cols, int64_t first_k, int64_t depth,
                       float* base) const {
  const int64_t height = kernels_.gemm_rows, width = kernels_.gemm_cols, parts = threads_.count(), row = a.stride[0];
  const int64_t panels = cut.split_rows ? (s.m + height - 1) / height : (cols + width - 1) / width;
  threads_.ranges(parts, 1, [&](int64_t first_part, int64_t last_part) {
    for (int64_t part = first_part; part < last_part; ++part) {
      const int64_t begin = panels * part / parts, end = panels * (part + 1) / parts;
      const int64_t m_begin = cut.split_rows ? begin * height : 0, m_end = cut.split_rows ? std::min(s.m, end * height) : s.m;
      const int64_t n_begin = cut.split_rows ? 0 : begin * width, n_end = cut.split_rows ? cols : std::min(cols, end * width);
      float* packed = base + cut.a_begin + part * cut.a_each;
      for (int64_t i = m_begin; i < m_end && n_begin < n_end; i += cut.rows) {
        const int64_t m = std::min(cut.rows, m_end - i);
        kernels_.gemm_pack_a[elem(a.dtype)](GemmPackArgs{.dst = packed,
                                                         .src = at(a, s.trans_a ? first_k * row + i : i * row + first_k),
                                                         .row = row,
                                                         .lines = m,
                                                         .depth = depth,
                                                         .k_contiguous = !s.trans_a});
        kernels_.gemm(GemmArgs{.c = c + i * ldc + n_begin,
                               .ldc = ldc,
                               .a = packed,
                               .b = base + n_begin * depth,
                               .m = m,
                               .n = n_end - n_begin,
                               .depth = depth,
                               .accumulate = s.accumulate || first_k > 0});
      }
    }
  });
}

void CpuGemm::run(Tensor c, Tensor a, Tensor b, const MatmulShape& s, Tensor scratch) const {
  const Blocks cut(s, kernels_, threads_.count());
  auto* base = scratch.as<float>();
  const bool narrow = s.c == DType::bf16;  // sums stay in f32 until the store
  float* sums = narrow ? base + cut.c_begin : c.as<float>();
  const int64_t ldc = narrow ? s.n : c.stride[0];
  const auto rows = [&](const auto& body) {
    threads_.ranges(s.m, std::max<int64_t>(1, 8192 / s.n), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) body(sums + r * s.n, c.as<uint16_t>() + r * c.stride[0]);
    });
  };
  if (narrow && s.accumulate) rows([&](float* wide, const uint16_t* from) { kernels_.widen(wide, from, s.n); });
  for (int64_t n = 0; n < s.n; n += kColsMax) {
    const int64_t cols = std::min(kColsMax, s.n - n);
    for (int64_t k = 0; k < s.k; k += cut.depth) {
      const int64_t depth = std::min(cut.depth, s.k - k);
      pack_b(b, s, cut, n, cols, k, depth, base);
      multiply(sums + n, ldc, a, s, cut, cols, k, depth, base);
    }
  }
  if (narrow) rows([&](const float* wide, uint16_t* to) { kernels_.narrow(to, wide, s.n); });
}

}  // namespace hlat
