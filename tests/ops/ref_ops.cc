#include "ops/ref_ops.h"

#include <cmath>

#include "support/host_memory.h"

namespace hlat {
namespace {

// The row of a table that begins at `first` with `rows` rows, or -1 when it is not there.
int64_t row_of(const Tensor& ids, int64_t n, int64_t first, int64_t rows) {
  const int64_t id = ids.as<int32_t>()[n];
  HLAT_CHECK(id >= 0, "id {}", id);
  return first <= id && id < first + rows ? id - first : -1;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

void RefOps::do_embed(Tensor y, Tensor ids, Tensor table, int64_t first) {
  for (int64_t n = 0; n < y.dim(0); ++n) {
    const int64_t r = row_of(ids, n, first, table.dim(0));
    for (int64_t d = 0; d < y.dim(1); ++d) row(y, n)[d] = r < 0 ? 0 : row(table, r)[d];
  }
}

void RefOps::do_embed_bwd(Tensor dtable, Tensor ids, Tensor dy, int64_t first, Tensor /*scratch*/) {
  for (int64_t n = 0; n < dy.dim(0); ++n) {
    const int64_t r = row_of(ids, n, first, dtable.dim(0));
    for (int64_t d = 0; d < dy.dim(1) && r >= 0; ++d) row(dtable, r)[d] += row(dy, n)[d];
  }
}

void RefOps::do_matmul(Tensor c, Tensor a, Tensor b, const MatmulShape& s, Tensor) {
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) {
      double sum = s.accumulate ? row(c, i)[j] : 0;
      for (int64_t k = 0; k < s.k; ++k) sum += (s.trans_a ? row(a, k)[i] : row(a, i)[k]) * (s.trans_b ? row(b, j)[k] : row(b, k)[j]);
      row(c, i)[j] = sum;
    }
  }
}

void RefOps::do_rmsnorm(Tensor y, Tensor rstd, Tensor x, Tensor w, double eps) {
  const int64_t width = x.dim(1);
  for (int64_t n = 0; n < x.dim(0); ++n) {
    double squares = 0;
    for (int64_t d = 0; d < width; ++d) squares += row(x, n)[d] * row(x, n)[d];
    const double r = 1 / std::sqrt(squares / static_cast<double>(width) + eps);
    for (int64_t d = 0; d < width; ++d) row(y, n)[d] = row(x, n)[d] * r * row(w)[d];
    row(rstd)[n] = r;
  }
}

void RefOps::do_add_rmsnorm(Tensor sum, Tensor y, Tensor rstd, Tensor x, Tensor delta, Tensor w, double eps) {
  do_add(sum, x, delta);
  do_rmsnorm(y, rstd, sum, w, eps);
}

// With xhat = x * rstd and g = dy * w: dx = rstd * (g - xhat * mean(g * xhat)), dw = sum over rows of dy * xhat.
void RefOps::do_rmsnorm_bwd(Tensor dx, Tensor dw, Tensor dy, Tensor x, Tensor w, Tensor rstd, NormBwdArgs args, Tensor) {
  const int64_t width = x.dim(1);
  if (!args.accumulate_dw) do_fill(dw, 0);
  for (int64_t n = 0; n < x.dim(0); ++n) {
    const double r = row(rstd)[n];
    double mean = 0;
    for (int64_t d = 0; d < width; ++d) mean += row(dy, n)[d] * row(w)[d] * row(x, n)[d] * r / static_cast<double>(width);
    for (int64_t d = 0; d < width; ++d) {
      const double xhat = row(x, n)[d] * r;
      const double g = row(dy, n)[d];
      row(dw)[d] += g * xhat;
      row(dx, n)[d] = (args.add_dx ? row(dx, n)[d] : 0) + r * (g * row(w)[d] - xhat * mean);
    }
  }
}

namespace {

// Stretched by the lengths of the waves in tokens, written independently of ops/rope_frequencies.h.
double stretched(double frequency, const RopeFrequencies& f) {
  if (f.scaling == RopeScaling::linear) return frequency / f.factor;
  if (f.scaling == RopeScaling::none) return frequency;
  const double wave = 2 * std::acos(-1.0) / frequency, longest_kept = f.original_len / f.high_turns, longest = f.original_len / f.low_turns;
  if (wave < longest_kept) return frequency;
  if (wave > longest) return frequency / f.factor;
  const double smooth = (f.original_len / wave - f.low_turns) / (f.high_turns - f.low_turns);
  return (1 - smooth) * frequency / f.factor + smooth * frequency;
}

}  // namespace

void RefOps::do_rope_table(Tensor table, const RopeFrequencies& frequencies) {
  const int64_t half = table.dim(1) / 2;
  for (int64_t t = 0; t < table.dim(0); ++t) {
    for (int64_t i = 0; i < half; ++i) {
      const double angle =
          static_cast<double>(t) * stretched(std::pow(frequencies.theta, -static_cast<double>(i) / static_cast<double>(half)), frequencies);
      row(table, t)[i] = std::cos(angle);
      row(table, t)[half + i] = std::sin(angle);
    }
  }
}

void RefOps::do_rope(Tensor qkv, Tensor table, AttentionShape s, int sign) {
  const int64_t half = s.head_dim / 2;
  for (int64_t n = 0; n < s.tokens(); ++n) {
    for (int64_t head = 0; head < s.heads + s.kv_heads; ++head) {
      double* x = row(qkv, n) + head * s.head_dim;
      for (int64_t i = 0; i < half; ++i) {
        const double c = row(table, n % s.seq)[i];
        const double sn = sign * row(table, n % s.seq)[half + i];
        const double a = x[i];
        const double b = x[half + i];
        x[i] = a * c - b * sn;
        x[half + i] = b * c + a * sn;
      }
    }
  }
}

void RefOps::do_swiglu(Tensor y, Tensor gu) {
  const int64_t width = y.dim(1);
  for (int64_t n = 0; n < y.dim(0); ++n) {
    for (int64_t f = 0; f < width; ++f) {
      const double g = row(gu, n)[f];
      row(y, n)[f] = g * sigmoid(g) * row(gu, n)[width + f];
    }
  }
}

// silu'(g) = sigmoid(g) * (1 + g * (1 - sigmoid(g)))
void RefOps::do_swiglu_bwd(Tensor dgu, Tensor dy, Tensor gu) {
  const int64_t width = dy.dim(1);
  for (int64_t n = 0; n < dy.dim(0); ++n) {
    for (int64_t f = 0; f < width; ++f) {
      const double g = row(gu, n)[f];
      const double up = row(gu, n)[width + f];
      const double s = sigmoid(g);
      row(dgu, n)[f] = row(dy, n)[f] * up * s * (1 + g * sigmoid(-g));
      row(dgu, n)[width + f] = row(dy, n)[f] * g * s;
    }
  }
}

void RefOps::do_add(Tensor y, Tensor a, Tensor b) {
  for (int64_t i = 0; i < y.numel(); ++i) y.as<double>()[i] = a.as<double>()[i] + b.as<double>()[i];
}

void RefOps::do_cast(Tensor dst, Tensor src, Rounding, NoiseKey, const ElementMap&) {
  for (int64_t i = 0; i < dst.numel(); ++i) store_f64(dst, i, load_f64(src, i));
}

void RefOps::do_fill(Tensor t, double value) {
  for (int64_t i = 0; i < t.numel(); ++i) store_f64(t, i, value);
}

void RefOps::do_fill_normal(Tensor t, double std, NoiseKey key, const ElementMap& map) {
  for (int64_t i = 0; i < t.numel(); ++i) {
    const uint64_t e = static_cast<uint64_t>(map.global(i));
    store_f64(t, i, std * static_cast<double>(normal_block(key, e / 4)[e % 4]));
  }
}

}  // namespace hlat
