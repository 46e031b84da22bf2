// The plain ops, step by step as their bf16 arithmetic is: simple loops over rows, for comparison and not for speed.
#include <cmath>
#include <limits>

#include "backend/cpu/cpu_ops.h"
#include "base/bf16.h"

namespace hlat {

namespace {

// The nearest bf16, as a float.
float near(float x) { return to_float(to_bf16(x)); }
float get(const Tensor& t, int64_t i) { return to_float(t.as<bf16>()[i]); }
void put_near(const Tensor& t, int64_t i, float x) { t.as<bf16>()[i] = to_bf16(x); }

}  // namespace

void CpuOps::do_narrow_softmax(Tensor p, Tensor lse, Tensor scores, double scale) {
  elem(scores.dtype);
  const int64_t seq = scores.dim(0);
  const auto factor = static_cast<float>(scale);
  threads_.ranges(seq, row_grain(seq), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t at = t * seq;
      float peak = -std::numeric_limits<float>::infinity(), sum = 0;
      for (int64_t i = 0; i <= t; ++i) {
        put_near(p, at + i, get(scores, at + i) * factor);
        peak = std::max(peak, get(p, at + i));
      }
      for (int64_t i = 0; i <= t; ++i) {
        put_near(p, at + i, std::exp(near(get(p, at + i) - peak)));
        sum += get(p, at + i);
      }
      sum = near(sum);
      for (int64_t i = 0; i <= t; ++i) put_near(p, at + i, get(p, at + i) / sum);
      for (int64_t i = t + 1; i < seq; ++i) put_near(p, at + i, 0);
      lse.as<float>()[t] = peak + std::log(sum);
    }
  });
}

void CpuOps::do_narrow_softmax_bwd(Tensor dscores, Tensor dp, Tensor p, double scale) {
  elem(p.dtype);
  const int64_t seq = p.dim(0);
  const auto factor = static_cast<float>(scale);
  threads_.ranges(seq, row_grain(seq), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t at = t * seq;
      float sum = 0;
      for (int64_t i = 0; i <= t; ++i) sum += near(get(p, at + i) * get(dp, at + i));
      sum = near(sum);
      for (int64_t i = 0; i <= t; ++i) put_near(dscores, at + i, near(get(p, at + i) * near(get(dp, at + i) - sum)) * factor);
      for (int64_t i = t + 1; i < seq; ++i) put_near(dscores, at + i, 0);
    }
  });
}

void CpuOps::do_narrow_rmsnorm(Tensor y, Tensor rstd, Tensor x, Tensor w, double eps) {
  elem(x.dtype);
  const int64_t width = x.dim(1);
  threads_.ranges(x.dim(0), row_grain(width), [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      float sum = 0;
      for (int64_t i = n * width; i < (n + 1) * width; ++i) sum += near(get(x, i) * get(x, i));
      const float mean = near(near(sum) / static_cast<float>(width));
      const float r = near(1.0f / near(std::sqrt(near(mean + static_cast<float>(eps)))));
      rstd.as<float>()[n] = r;
      for (int64_t i = 0; i < width; ++i) put_near(y, n * width + i, near(get(x, n * width + i) * r) * get(w, i));
    }
  });
}

// With g = dy w, c = mean(g x) r^2: dx = r (g - x c), dw = sum over rows of dy x r.
void CpuOps::do_narrow_rmsnorm_bwd(Tensor dx, Tensor dw, Tensor dy, Tensor x, Tensor w, Tensor rstd, NormBwdArgs args, Tensor scratch) {
  elem(x.dtype);
  const int64_t rows = x.dim(0), width = x.dim(1), parts = scratch.defined() ? scratch.dim(0) : 0;
  const float* r = rstd.as<float>();
  threads_.ranges(parts, 1, [&](int64_t first, int64_t last) {
    for (int64_t p = first; p < last; ++p) {
      float* sums = scratch.as<float>() + p * width;
      std::fill(sums, sums + width, 0.0f);
      for (int64_t n = rows * p / parts; n < rows * (p + 1) / parts; ++n) {
        const int64_t at = n * width;
        float dot = 0;
        for (int64_t i = 0; i < width; ++i) dot += near(near(get(dy, at + i) * get(w, i)) * get(x, at + i));
        const float c = near(near(near(dot) / static_cast<float>(width)) * near(r[n] * r[n]));
        for (int64_t i = 0; i < width; ++i) {
          sums[i] += near(near(get(dy, at + i) * get(x, at + i)) * r[n]);
          const float g = near(get(dy, at + i) * get(w, i));
          const float d = near(near(g - near(get(x, at + i) * c)) * r[n]);
          put_near(dx, at + i, args.add_dx ? get(dx, at + i) + d : d);
        }
      }
    }
  });
  for (int64_t i = 0; i < width; ++i) {
    float total = 0;
    for (int64_t p = 0; p < parts; ++p) total += scratch.as<float>()[p * width + i];
    if (dw.dtype == DType::bf16)
      put_near(dw, i, args.accumulate_dw ? get(dw, i) + total : total);
    else
      dw.as<float>()[i] = args.accumulate_dw ? dw.as<float>()[i] + total : total;
  }
}

void CpuOps::do_narrow_cross_entropy_partial(Tensor stats, Tensor logits, Tensor targets, int64_t first) {
  elem(logits.dtype);
  const int64_t vocab = logits.dim(1);
  threads_.ranges(logits.dim(0), row_grain(vocab), [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const int64_t at = n * vocab, target = targets.as<int32_t>()[n] - first;
      float peak = -std::numeric_limits<float>::infinity(), sum = 0;
      for (int64_t v = 0; v < vocab; ++v) peak = std::max(peak, get(logits, at + v));
      for (int64_t v = 0; v < vocab; ++v) sum += near(std::exp(near(get(logits, at + v) - peak)));
      float* s = stats.as<float>() + 3 * n;
      s[0] = peak;
      s[1] = near(sum);
      s[2] = targets.as<int32_t>()[n] >= 0 && target >= 0 && target < vocab ? get(logits, at + target) : 0.0f;
    }
  });
}

// A merge of shards leaves sums in f32: they are rounded here.
void CpuOps::do_narrow_cross_entropy_finish(Tensor loss_sum, Tensor stats, Tensor targets) {
  double total = 0;
  for (int64_t n = 0; n < stats.dim(0); ++n) {
    if (targets.as<int32_t>()[n] < 0) continue;
    const float* s = stats.as<float>() + 3 * n;
    total += static_cast<double>(near(near(std::log(near(s[1]))) + near(s[0] - s[2])));
  }
  *loss_sum.as<double>() += total;
}

void CpuOps::do_narrow_cross_entropy_bwd(Tensor dlogits, Tensor logits, Tensor stats, Tensor targets, int64_t first, double scale) {
  elem(logits.dtype);
  const int64_t vocab = logits.dim(1);
  const float factor = near(static_cast<float>(scale));
  threads_.ranges(logits.dim(0), row_grain(vocab), [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const float* s = stats.as<float>() + 3 * n;
      const int32_t target = targets.as<int32_t>()[n];
      for (int64_t v = 0; v < vocab; ++v) {
        const int64_t i = n * vocab + v;
        const float p = near(near(std::exp(near(get(logits, i) - s[0]))) / near(s[1]));
        put_near(dlogits, i, target < 0 ? 0.0f : near(p - (target == first + v ? 1.0f : 0.0f)) * factor);
      }
    }
  });
}

void CpuOps::do_round_rows(Tensor dst, Tensor src, NoiseKey key, const ElementMap& map) {
  const auto words = philox_key(key);
  const int64_t width = dst.dim(1);
  threads_.ranges(dst.dim(0), row_grain(width), [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n)
      map.for_runs(n * width, (n + 1) * width, [&](int64_t from, int64_t to, int64_t global) {
        const int64_t column = from - n * width;
        kernels_.narrow_stochastic(dst.as<uint16_t>() + n * dst.stride[0] + column, src.as<float>() + n * src.stride[0] + column, to - from,
                                   global, words.data(), key.step, static_cast<uint32_t>(key.purpose));
      });
  });
}

}  // namespace hlat
