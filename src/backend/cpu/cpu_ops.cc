// Row-parallel drivers of the elementwise, norm and loss kernels.
#include "backend/cpu/cpu_ops.h"

#include <omp.h>

#include <cmath>
#include <cstring>

#include "base/bf16.h"

namespace hlat {

namespace {

void check_ids(const Tensor& ids) {
  for (int64_t n = 0; n < ids.numel(); ++n) HLAT_CHECK(ids.as<int32_t>()[n] >= 0, "token id {} at {}", ids.as<int32_t>()[n], n);
}

}  // namespace

CpuOps::CpuOps(Region& temp, const CpuOptions& options)
    : Ops(temp),
      kernels_(select_kernels(options.isa)),
      threads_(options.threads),
      matmul_(std::make_unique<CpuMatmul>(kernels_, threads_, has_native_bf16(), options.few_rows)) {
  omp_set_num_threads(threads_.count());  // oneDNN asks OpenMP
}

size_t CpuOps::matmul_scratch(const MatmulShape& s) const { return matmul_->scratch(s); }

void CpuOps::do_matmul(Tensor c, Tensor a, Tensor b, const MatmulShape& s, Tensor scratch) { matmul_->run(c, a, b, s, scratch); }

void CpuOps::do_embed(Tensor y, Tensor ids, Tensor table, int64_t first) {
  check_ids(ids);
  const auto row = static_cast<size_t>(y.dim(1)) * size_of(y.dtype);
  threads_.ranges(y.dim(0), row_grain(y.dim(1)), [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const int64_t r = ids.as<int32_t>()[n] - first;
      if (0 <= r && r < table.dim(0))
        std::memcpy(at(y, n * y.dim(1)), at(table, r * y.dim(1)), row);
      else
        std::memset(at(y, n * y.dim(1)), 0, row);
    }
  });
}

void CpuOps::do_embed_bwd(Tensor dtable, Tensor ids, Tensor dy, int64_t first, Tensor /*scratch*/) {
  check_ids(ids);
  const int64_t width = dy.dim(1);
  const auto load = [](const Tensor& t, int64_t i) { return t.dtype == DType::bf16 ? to_float(t.as<bf16>()[i]) : t.as<float>()[i]; };
  // Threads share columns, not rows: every sum keeps the order of the tokens.
  threads_.ranges(width, 64, [&](int64_t begin, int64_t end) {
    for (int64_t n = 0; n < dy.dim(0); ++n) {
      const int64_t r = ids.as<int32_t>()[n] - first;
      if (r < 0 || r >= dtable.dim(0)) continue;
      for (int64_t d = begin; d < end; ++d) {
        const int64_t i = r * width + d;
        const float sum = load(dtable, i) + load(dy, n * width + d);
        if (dtable.dtype == DType::bf16)
          dtable.as<bf16>()[i] = to_bf16(sum);
        else
          dtable.as<float>()[i] = sum;
      }
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

void CpuOps::do_rope_table(Tensor table, const RopeFrequencies& frequencies) {
  const int64_t half = table.dim(1) / 2;
  for (int64_t t = 0; t < table.dim(0); ++t)
    for (int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(t) * frequencies.at(i, table.dim(1));
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
  threads_.ranges(y.numel(), kGrain, [&](int64_t begin, int64_t end) {
    if (y.dtype != DType::f64) return kernels_.add[elem(y.dtype)](at(y, begin), at(a, begin), at(b, begin), end - begin);
    for (int64_t i = begin; i < end; ++i) y.as<double>()[i] = a.as<double>()[i] + b.as<double>()[i];
  });
}

void CpuOps::do_cross_entropy_partial(Tensor stats, Tensor logits, Tensor targets, int64_t first) {
  const int64_t v = logits.dim(1);
  threads_.ranges(logits.dim(0), row_grain(v), [&](int64_t begin, int64_t end) {
    kernels_.ce_partial[elem(logits.dtype)](stats.as<float>() + 3 * begin, at(logits, begin * v), targets.as<int32_t>() + begin,
                                            end - begin, v, first);
  });
}

// The rescaled sum is f64: few shards, and the loss is a logarithm of it.
void CpuOps::do_cross_entropy_merge(Tensor stats, Tensor parts) {
  const int64_t rows = stats.dim(0), shards = parts.dim(0);
  threads_.ranges(rows, row_grain(3 * shards), [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const float* part = parts.as<float>() + 3 * n;
      float peak = part[0], target = part[2];
      for (int64_t p = 1; p < shards; ++p) {
        peak = std::max(peak, part[3 * rows * p]);
        target += part[3 * rows * p + 2];
      }
      double total = 0;
      for (int64_t p = 0; p < shards; ++p) {
        const float* s = part + 3 * rows * p;
        total += static_cast<double>(s[1]) * std::exp(static_cast<double>(s[0]) - static_cast<double>(peak));
      }
      float* out = stats.as<float>() + 3 * n;
      out[0] = peak;
      out[1] = static_cast<float>(total);
      out[2] = target;
    }
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

void CpuOps::do_add_losses(Tensor table, Tensor stats, Tensor targets, Tensor groups, int64_t first, int64_t seq) {
  const int64_t parts = table.dim(1);
  for (int64_t n = 0; n < stats.dim(0); ++n) {
    if (targets.as<int32_t>()[n] < 0) continue;
    const float* s = stats.as<float>() + 3 * n;
    const int64_t row = (first + n) / seq, part = (first + n) % seq * parts / seq;
    table.as<double>()[groups.as<int32_t>()[row] * parts + part] +=
        std::log(static_cast<double>(s[1])) + static_cast<double>(s[0]) - static_cast<double>(s[2]);
  }
}

void CpuOps::do_cross_entropy_bwd(Tensor dlogits, Tensor logits, Tensor stats, Tensor targets, int64_t first, double scale) {
  const int64_t v = logits.dim(1);
  threads_.ranges(logits.dim(0), row_grain(v), [&](int64_t begin, int64_t end) {
    kernels_.ce_bwd[elem(logits.dtype)](at(dlogits, begin * v), at(logits, begin * v), stats.as<float>() + 3 * begin,
                                        targets.as<int32_t>() + begin, end - begin, v, first, static_cast<float>(scale));
  });
}

void CpuOps::do_argmax(Tensor ids, Tensor values, Tensor logits, int64_t first) {
  const int64_t v = logits.dim(1);
  threads_.ranges(logits.dim(0), row_grain(v), [&](int64_t begin, int64_t end) {
    int32_t* id = ids.as<int32_t>();
    kernels_.argmax[elem(logits.dtype)](id + begin, values.as<float>() + begin, at(logits, begin * v), end - begin, v);
    for (int64_t n = begin; n < end; ++n) id[n] += static_cast<int32_t>(first);
  });
}

}  // namespace hlat
