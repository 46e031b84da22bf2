// Row-parallel drivers of the elementwise, norm, loss and optimizer kernels.
#include "backend/cpu/cpu_ops.h"

#include <omp.h>

#include <cmath>

#include "base/bf16.h"

namespace hlat {

namespace {

constexpr int64_t kGrain = 16384;  // elements below which a second thread costs more than it saves

int64_t row_grain(int64_t width) { return std::max<int64_t>(1, kGrain / std::max<int64_t>(width, 1)); }

// Parts of a reduction: fixed by the size alone, so sums do not depend on the number of threads.
constexpr int64_t kSumParts = 64;
constexpr int64_t kSumGrain = 4096;

int64_t sum_parts(int64_t n) { return std::clamp<int64_t>(n / kSumGrain, 1, kSumParts); }

}  // namespace

CpuOps::CpuOps(Region& temp, const CpuOptions& options)
    : Ops(temp),
      kernels_(select_kernels(options.isa)),
      threads_(options.threads),
      matmul_(std::make_unique<CpuMatmul>(kernels_, threads_, has_native_bf16())) {
  omp_set_num_threads(threads_.count());  // oneDNN asks OpenMP
}

size_t CpuOps::matmul_scratch(const MatmulShape& s) const { return matmul_->scratch(s); }

void CpuOps::do_matmul(Tensor c, Tensor a, Tensor b, const MatmulShape& s, Tensor scratch) { matmul_->run(c, a, b, s, scratch); }

void CpuOps::do_embed(Tensor y, Tensor ids, Tensor table) {
  const auto row = static_cast<size_t>(y.dim(1)) * size_of(y.dtype);
  for (int64_t n = 0; n < ids.numel(); ++n) {
    const int32_t id = ids.as<int32_t>()[n];
    HLAT_CHECK(id >= 0 && id < table.dim(0), "token id {} of a vocabulary of {}", id, table.dim(0));
  }
  threads_.ranges(y.dim(0), row_grain(y.dim(1)), [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) std::memcpy(at(y, n * y.dim(1)), at(table, ids.as<int32_t>()[n] * y.dim(1)), row);
  });
}

void CpuOps::do_embed_bwd(Tensor dtable, Tensor ids, Tensor dy) {
  const int64_t width = dy.dim(1);
  const auto* id = ids.as<int32_t>();
  const auto load = [](const Tensor& t, int64_t i) { return t.dtype == DType::bf16 ? to_float(t.as<bf16>()[i]) : t.as<float>()[i]; };
  // Threads share columns, not rows: every sum keeps the order of the tokens.
  threads_.ranges(width, 64, [&](int64_t begin, int64_t end) {
    for (int64_t n = 0; n < dy.dim(0); ++n)
      for (int64_t d = begin; d < end; ++d) {
        const int64_t i = id[n] * width + d;
        const float sum = load(dtable, i) + load(dy, n * width + d);
        if (dtable.dtype == DType::bf16)
          dtable.as<bf16>()[i] = to_bf16(sum);
        else
          dtable.as<float>()[i] = sum;
      }
  });
}

void CpuOps::do_rmsnorm(Tensor y, Tensor rstd, Tensor x, Tensor w, double eps) {
  const int64_t d = x.dim(1);
  threads_.ranges(x.dim(0), row_grain(d), [&](int64_t begin, int64_t end) {
    kernels_.rmsnorm[elem(x.dtype)](at(y, begin * d), rstd.as<float>() + begin, at(x, begin * d), w.data, end - begin, d,
                                    static_cast<float>(eps));
  });
}

void CpuOps::do_add_rmsnorm(Tensor sum, Tensor y, Tensor rstd, Tensor x, Tensor delta, Tensor w, double eps) {
  const int64_t d = x.dim(1);
  threads_.ranges(x.dim(0), row_grain(d), [&](int64_t begin, int64_t end) {
    kernels_.add_rmsnorm[elem(x.dtype)](at(sum, begin * d), at(y, begin * d), rstd.as<float>() + begin, at(x, begin * d),
                                        at(delta, begin * d), w.data, end - begin, d, static_cast<float>(eps));
  });
}

namespace {

int64_t norm_parts(int64_t rows) { return std::clamp<int64_t>(rows / 32, 1, kSumParts); }

}  // namespace

size_t CpuOps::rmsnorm_bwd_scratch(int64_t rows, int64_t width) const {
  return static_cast<size_t>(norm_parts(rows) * width) * sizeof(float);
}

void CpuOps::do_rmsnorm_bwd(Tensor dx, Tensor dw, Tensor dy, Tensor x, Tensor w, Tensor rstd, NormBwdArgs args, Tensor scratch) {
  const int64_t rows = x.dim(0), d = x.dim(1), parts = norm_parts(rows);
  auto* sums = scratch.as<float>();
  threads_.ranges(parts, 1, [&](int64_t first, int64_t last) {
    for (int64_t p = first; p < last; ++p) {
      const int64_t begin = rows * p / parts, end = rows * (p + 1) / parts;
      kernels_.rmsnorm_bwd[elem(x.dtype)](at(dx, begin * d), sums + p * d, at(dy, begin * d), at(x, begin * d), w.data,
                                          rstd.as<float>() + begin, end - begin, d, args.add_dx);
    }
  });
  for (int64_t i = 0; i < d; ++i) {
    float total = 0;
    for (int64_t p = 0; p < parts; ++p) total += sums[p * d + i];
    if (dw.dtype == DType::bf16)
      dw.as<bf16>()[i] = to_bf16(args.accumulate_dw ? to_float(dw.as<bf16>()[i]) + total : total);
    else
      dw.as<float>()[i] = args.accumulate_dw ? dw.as<float>()[i] + total : total;
  }
}

void CpuOps::do_rope_table(Tensor table, double theta) {
  const int64_t half = table.dim(1) / 2;
  for (int64_t t = 0; t < table.dim(0); ++t)
    for (int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(t) * std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(table.dim(1)));
      table.as<float>()[t * 2 * half + i] = static_cast<float>(std::cos(angle));
      table.as<float>()[t * 2 * half + half + i] = static_cast<float>(std::sin(angle));
    }
}

void CpuOps::do_rope(Tensor qkv, Tensor table, AttentionShape s, int sign) {
  threads_.ranges(s.tokens(), row_grain(s.qkv_width()), [&](int64_t begin, int64_t end) {
    kernels_.rope[elem(qkv.dtype)](qkv.data, table.as<float>(), begin, end - begin, s.seq, s.qkv_width(), s.heads + s.kv_heads, s.head_dim,
                                   static_cast<float>(sign));
  });
}

void CpuOps::do_swiglu(Tensor y, Tensor gu) {
  const int64_t f = y.dim(1);
  threads_.ranges(y.dim(0), row_grain(f), [&](int64_t begin, int64_t end) {
    kernels_.swiglu[elem(y.dtype)](at(y, begin * f), at(gu, begin * 2 * f), end - begin, f);
  });
}

void CpuOps::do_swiglu_bwd(Tensor dgu, Tensor dy, Tensor gu) {
  const int64_t f = dy.dim(1);
  threads_.ranges(dy.dim(0), row_grain(f), [&](int64_t begin, int64_t end) {
    kernels_.swiglu_bwd[elem(dy.dtype)](at(dgu, begin * 2 * f), at(dy, begin * f), at(gu, begin * 2 * f), end - begin, f);
  });
}

void CpuOps::do_add(Tensor y, Tensor a, Tensor b) {
  threads_.ranges(y.numel(), kGrain,
                  [&](int64_t begin, int64_t end) { kernels_.add[elem(y.dtype)](at(y, begin), at(a, begin), at(b, begin), end - begin); });
}

void CpuOps::do_cross_entropy_partial(Tensor stats, Tensor logits, Tensor targets, int64_t first) {
  const int64_t v = logits.dim(1);
  threads_.ranges(logits.dim(0), row_grain(v), [&](int64_t begin, int64_t end) {
    kernels_.ce_partial[elem(logits.dtype)](stats.as<float>() + 3 * begin, at(logits, begin * v), targets.as<int32_t>() + begin,
                                            end - begin, v, first);
  });
}

void CpuOps::do_cross_entropy_finish(Tensor loss_sum, Tensor stats, Tensor targets) {
  double total = 0;
  for (int64_t n = 0; n < stats.dim(0); ++n) {
    if (targets.as<int32_t>()[n] < 0) continue;
    const float* s = stats.as<float>() + 3 * n;
    total += std::log(static_cast<double>(s[1])) + static_cast<double>(s[0]) - static_cast<double>(s[2]);
  }
  *loss_sum.as<double>() += total;
}

void CpuOps::do_cross_entropy_bwd(Tensor dlogits, Tensor logits, Tensor stats, Tensor targets, int64_t first, double scale) {
  const int64_t v = logits.dim(1);
  threads_.ranges(logits.dim(0), row_grain(v), [&](int64_t begin, int64_t end) {
    kernels_.ce_bwd[elem(logits.dtype)](at(dlogits, begin * v), at(logits, begin * v), stats.as<float>() + 3 * begin,
                                        targets.as<int32_t>() + begin, end - begin, v, first, static_cast<float>(scale));
  });
}

void CpuOps::do_sum_squares(Tensor out, Tensor x) {
  const int64_t n = x.numel(), parts = sum_parts(n);
  std::array<double, kSumParts> part{};
  threads_.ranges(parts, 1, [&](int64_t first, int64_t last) {
    for (int64_t p = first; p < last; ++p) {
      const int64_t begin = n * p / parts, end = n * (p + 1) / parts;
      part[static_cast<size_t>(p)] = kernels_.sum_squares[elem(x.dtype)](at(x, begin), end - begin);
    }
  });
  double total = 0;
  for (const double p : part) total += p;
  *out.as<double>() = total;
}

void CpuOps::do_clip_scale(Tensor scale, Tensor sq, double max_norm) {
  double total = 0;
  for (int64_t i = 0; i < sq.numel(); ++i) total += sq.as<double>()[i];
  const double factor = max_norm > 0 ? max_norm / (std::sqrt(total) + 1e-6) : 1.0;
  *scale.as<float>() = static_cast<float>(std::min(1.0, factor));
}

void CpuOps::do_adamw(const AdamwTensors& t, const AdamwScalars& s) {
  const auto key = philox_key({s.seed, s.stream});
  AdamwArgs args{};
  args.weight = t.weight.data;
  args.master = t.master.defined() ? t.master.as<float>() : nullptr;
  args.m = t.m.data;
  args.v = t.v.data;
  args.grad = t.grad.data;
  args.first_element = s.first_element;
  args.grad_scale = *t.scale.as<float>();
  args.lr = s.lr;
  args.beta1 = s.beta1;
  args.beta2 = s.beta2;
  args.eps = s.eps;
  args.decay_factor = 1.0f - s.lr * s.weight_decay;
  args.correction1 = static_cast<float>(1.0 / (1.0 - std::pow(static_cast<double>(s.beta1), static_cast<double>(s.step))));
  args.correction2_rsqrt = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(static_cast<double>(s.beta2), static_cast<double>(s.step))));
  args.stochastic = s.rounding == Rounding::stochastic;
  args.key_weight[0] = key[0];
  args.key_weight[1] = key[1];
  args.step = static_cast<uint32_t>(s.step);
  const auto kernel = kernels_.adamw[elem(t.weight.dtype)][elem(t.m.dtype)][elem(t.grad.dtype)];
  const int64_t n = t.weight.numel(), parts = sum_parts(n);
  std::array<double, kSumParts> part{};
  threads_.ranges(parts, 1, [&](int64_t first, int64_t last) {
    for (int64_t p = first; p < last; ++p) {
      AdamwArgs mine = args;
      mine.begin = n * p / parts;
      mine.end = n * (p + 1) / parts;
      part[static_cast<size_t>(p)] = kernel(mine);
    }
  });
  double total = 0;
  for (const double p : part) total += p;
  *t.weight_sq.as<double>() = total;
}

}  // namespace hlat
