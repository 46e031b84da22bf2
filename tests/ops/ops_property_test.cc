// Properties every backend has besides agreement with the reference: rounding is unbiased and keyed, random fills have the
// right moments and do not depend on how a tensor is split, attention does not look ahead, the same call gives the same bits.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "backend/cpu/cpu_ops.h"
#include "ops/ref_ops.h"
#include "support/adamw_call.h"
#include "support/ops_fixture.h"

namespace hlat {
namespace {

class OpsProperty : public OpsFixture {
 protected:
  Tensor stochastic(const Tensor& src, const NoiseKey& key, int64_t first = 0) {
    const Tensor dst = memory_.zeros(DType::bf16, src.shape);
    run([&](Ops& ops) { ops.cast(dst, src, Rounding::stochastic, key, {.first = first}); });
    return dst;
  }
};

constexpr NoiseKey kKey{.seed = 3, .stream = 4, .purpose = Noise::cast, .step = 5};

TEST_P(OpsProperty, NearestCastBreaksTiesToEven) {
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<std::pair<double, double>> cases = {
      {1 + 0x1p-8, 1},
      {1 + 3 * 0x1p-8, 1 + 0x1p-6},
      {-1 - 0x1p-8, -1},
      {1 + 0x1p-8 + 0x1p-23, 1 + 0x1p-7},
      {0, 0},
      {std::numeric_limits<float>::max(), inf},
      {-inf, -inf},
      {0x1p-133, 0x1p-133},
      {0x1p-134, 0},
      {3.0, 3.0},
  };
  for (size_t repeat = 0; repeat < 4; ++repeat) {  // at several offsets inside a vector register
    std::vector<double> in(repeat, 1.0), expected(repeat, 1.0);
    for (const auto& [value, rounded] : cases) in.push_back(value), expected.push_back(rounded);
    const Tensor src = vector(DType::f32, in), dst = memory_.zeros(DType::bf16, src.shape), back = memory_.zeros(DType::f32, src.shape);
    run([&](Ops& ops) { ops.cast(dst, src), ops.cast(back, dst); });
    EXPECT_EQ(to_f64(dst), expected);
    EXPECT_EQ(to_f64(back), expected);
  }
}

TEST_P(OpsProperty, CastKeepsNanAndInfinity) {
  const Tensor src = vector(DType::f32, {std::nan(""), std::numeric_limits<double>::infinity()});
  for (const Rounding rounding : {Rounding::nearest, Rounding::stochastic}) {
    const Tensor dst = memory_.zeros(DType::bf16, {2});
    run([&](Ops& ops) { ops.cast(dst, src, rounding, kKey); });
    EXPECT_TRUE(std::isnan(load_f64(dst, 0)));
    EXPECT_EQ(load_f64(dst, 1), std::numeric_limits<double>::infinity());
  }
}

// n independent choices between two neighbours one ulp apart: the mean has deviation ulp * sqrt(f (1 - f) / n).
TEST_P(OpsProperty, StochasticRoundingIsUnbiased) {
  const int64_t n = 4096;
  const int steps = 64;
  for (const double value : {1 + 0x1p-8, 1 + 0x1p-12, 1 + 0x1p-7 - 0x1p-12, -3.3, 1e-20, -2.7e30}) {
    const Tensor src = memory_.zeros(DType::f32, {n});
    run([&](Ops& ops) { ops.fill(src, value); });
    const double exact = load_f64(src, 0);
    const double below =
        std::abs(static_cast<double>(to_float(bf16{static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(exact)) >> 16)})));
    const double ulp = std::ldexp(1.0, std::ilogb(exact) - 7);
    double sum = 0;
    for (int step = 0; step < steps; ++step) {
      NoiseKey key = kKey;
      key.step = static_cast<uint32_t>(step);
      for (const double v : to_f64(stochastic(src, key))) {
        ASSERT_TRUE(std::abs(v) == below || std::abs(v) == below + ulp) << v << " from " << exact;
        sum += v;
      }
    }
    const double count = static_cast<double>(n) * steps, fraction = (std::abs(exact) - below) / ulp;
    EXPECT_NEAR(sum / count, exact, 5 * ulp * std::sqrt(fraction * (1 - fraction) / count)) << exact;
  }
}

TEST_P(OpsProperty, StochasticRoundingFollowsItsKey) {
  const Tensor src = memory_.random(DType::f32, {1003}, "src");
  const Tensor whole = stochastic(src, kKey, 21);
  for (int64_t i = 0; i < src.numel(); ++i)
    ASSERT_EQ(whole.as<bf16>()[i].bits, to_bf16_stochastic(src.as<float>()[i], noise_at(kKey, 21 + i)).bits) << i;
  EXPECT_TRUE(same_bits(whole, stochastic(src, kKey, 21)));
  for (const NoiseKey& other :
       {NoiseKey{3, 4, Noise::cast, 6}, NoiseKey{3, 5, Noise::cast, 5}, NoiseKey{4, 4, Noise::cast, 5}, NoiseKey{3, 4, Noise::init, 5}})
    EXPECT_FALSE(same_bits(whole, stochastic(src, other, 21)));
  EXPECT_FALSE(same_bits(whole, stochastic(src, kKey, 22)));
  // Element indices above 32 bits are distinct too.
  EXPECT_FALSE(same_bits(whole, stochastic(src, kKey, 21 + (int64_t{1} << 35))));
}

// Pieces of a tensor, each told where it begins, are the whole.
TEST_P(OpsProperty, NoiseDoesNotDependOnTheSplit) {
  const int64_t first = 5, n = 20011;
  const Tensor src = memory_.random(DType::f32, {n}, "src"), whole = stochastic(src, kKey, first), split = memory_.zeros(DType::bf16, {n});
  const Tensor normal = memory_.zeros(DType::f32, {n}), normal_split = memory_.zeros(DType::f32, {n});
  run([&](Ops& ops) { ops.fill_normal(normal, 0.5, kKey, {.first = first}); });
  const std::vector<int64_t> cuts = {0, 1, 2, 9, 100, 107, 16384, 16391, n};
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    run([&](Ops& ops) {
      ops.cast(split.rows(cuts[i], cuts[i + 1]), src.rows(cuts[i], cuts[i + 1]), Rounding::stochastic, kKey, {.first = first + cuts[i]});
      ops.fill_normal(normal_split.rows(cuts[i], cuts[i + 1]), 0.5, kKey, {.first = first + cuts[i]});
    });
  }
  EXPECT_TRUE(same_bits(whole, split));
  EXPECT_TRUE(same_bits(normal, normal_split));
}

// The moments of n samples deviate by sqrt(1/n), sqrt(2/n) and sqrt(96/n) in units of the first, second and fourth power.
TEST_P(OpsProperty, FillNormalIsNormal) {
  const int64_t n = 200000;
  const double std = 0.02, root = std::sqrt(static_cast<double>(n));
  const Tensor t = memory_.zeros(DType::f32, {n}), half = memory_.zeros(DType::bf16, {n});
  run([&](Ops& ops) { ops.fill_normal(t, std, kKey, {.first = 7}), ops.fill_normal(half, std, kKey, {.first = 7}); });
  double mean = 0, square = 0, fourth = 0, neighbours = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double exact = std * static_cast<double>(normal_block(kKey, static_cast<uint64_t>(i + 7) / 4)[static_cast<size_t>((i + 7) % 4)]);
    const double x = load_f64(t, i);
    ASSERT_NEAR(x, exact, 4 * 0x1p-24 * std::abs(exact)) << i;  // a device may round its logarithm differently
    ASSERT_NEAR(load_f64(half, i), exact, 1.001 * 0x1p-8 * std::abs(exact)) << i;
    const double z = x / std;
    mean += z / static_cast<double>(n);
    square += z * z / static_cast<double>(n);
    fourth += z * z * z * z / static_cast<double>(n);
    if (i > 0) neighbours += z * load_f64(t, i - 1) / std / static_cast<double>(n);
  }
  EXPECT_NEAR(mean, 0, 5 / root);
  EXPECT_NEAR(square, 1, 5 * std::sqrt(2.0) / root);
  EXPECT_NEAR(fourth, 3, 5 * std::sqrt(96.0) / root);
  EXPECT_NEAR(neighbours, 0, 5 / root);
}

TEST_P(OpsProperty, FillStoresTheRoundedValue) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
    for (const double value : {0.0, -1.5, 1 + 0x1p-8, 0.1}) {
      const Tensor t = memory_.random(dtype, {17}, "before"), expected = vector(dtype, std::vector<double>(17, value));
      run([&](Ops& ops) { ops.fill(t, value); });
      EXPECT_TRUE(same_bits(t, expected)) << name_of(dtype) << " " << value;
    }
  }
}

TEST_P(OpsProperty, ClipScale) {
  struct Case {
    std::vector<double> squares;
    double max_norm, expected;
  };
  const std::vector<Case> cases = {
      {{4, 5}, 1.5, 1.5 / (3 + 1e-6)},                        // clips
      {{4, 5}, 0, 1},                                         // off
      {{1e-4}, 1, 1},                                         // below the limit
      {{0}, 1, 1},                                            // no gradient at all
      {{1e-20}, 1, 1},                                        // tiny norm
      {{1e40, 1e40}, 1, 1 / (std::sqrt(2.0) * 1e20 + 1e-6)},  // squares beyond f32
      {{1e-12}, 1e-6, 0.5},                                   // the 1e-6 in the denominator counts
  };
  for (const Case& c : cases) {
    const Tensor scale = memory_.zeros(DType::f32, {1}), sq = vector(DType::f64, c.squares);
    run([&](Ops& ops) { ops.clip_scale(scale, sq, c.max_norm); });
    EXPECT_NEAR(load_f64(scale, 0), c.expected, 1e-7 * c.expected);
    EXPECT_LE(load_f64(scale, 0), 1.0);
  }
}

TEST_P(OpsProperty, BadGradientsChangeNothing) {
  const Tensor scale = memory_.zeros(DType::f32, {1}), squares = memory_.zeros(DType::f64, {1});
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    const Tensor sq = vector(DType::f64, {1, bad});
    run([&](Ops& ops) { ops.clip_scale(scale, sq, 1); });
    EXPECT_TRUE(std::isnan(load_f64(scale, 0)));
  }
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const auto make = [&](const char* name) { return memory_.random(dtype, {5001}, name); };
    const AdamwTensors t{.weight = make("w"),
                         .master = {},
                         .m = make("m"),
                         .v = make("v"),
                         .grad = make("g"),
                         .scale = scale,
                         .step = adamw_step(1, 1),
                         .weight_sq = squares};
    const Tensor w = memory_.copy(dtype, t.weight), m = memory_.copy(dtype, t.m), v = memory_.copy(dtype, t.v);
    run([&](Ops& ops) { adamw(ops, t, {.round_weights = Rounding::stochastic, .round_moments = Rounding::stochastic}); });
    EXPECT_TRUE(same_bits(t.weight, w) && same_bits(t.m, m) && same_bits(t.v, v));
    EXPECT_TRUE(std::isnan(load_f64(squares, 0)));
  }
}

// More tensors than one launch takes, of many sizes, some of them at odd addresses.
TEST_P(OpsProperty, ManyTensorsInOneCallAreAsOneByOne) {
  const Tensor scale = vector(DType::f32, {0.5}), step = adamw_step(0.1, 3);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    std::vector<Tensor> grads;
    std::vector<AdamwItem> one_by_one, together;
    constexpr int64_t kCount = 71;
    const Tensor single = memory_.zeros(DType::f64, {kCount}), many = memory_.zeros(DType::f64, {kCount});
    const Tensor weight_single = memory_.zeros(DType::f64, {kCount}), weight_many = memory_.zeros(DType::f64, {kCount});
    for (int64_t i = 0; i < kCount; ++i) {
      const int64_t n = i % 7 == 0 ? 1 + 3 * i : 5000 + 100 * i, odd = i % 5 == 3 ? 1 : 0;
      const auto make = [&](const char* name) { return memory_.random(dtype, {n + 1}, fmt::format("{} {}", name, i)).rows(odd, odd + n); };
      const AdamwScalars scalars{.weight_decay = i % 2 == 0 ? 0.1f : 0.0f,
                                 .round_weights = Rounding::stochastic,
                                 .round_moments = Rounding::stochastic,
                                 .seed = 5,
                                 .stream = static_cast<uint64_t>(i),
                                 .map = {.first = 8 * i}};
      grads.push_back(make("g"));
      AdamwTensors t{.weight = make("w"),
                     .master = dtype == DType::bf16 ? memory_.random(DType::f32, {n}, "master") : Tensor{},
                     .m = make("m"),
                     .v = make("v"),
                     .grad = grads.back(),
                     .scale = scale,
                     .step = step,
                     .weight_sq = weight_single.rows(i, i + 1)};
      run([&](Ops& ops) { ops.fill(t.v, 0.25); });
      one_by_one.push_back({t, scalars});
      t.weight = memory_.copy(dtype, t.weight);
      if (t.master.defined()) t.master = memory_.copy(DType::f32, t.master);
      t.m = memory_.copy(dtype, t.m);
      t.v = memory_.copy(dtype, t.v);
      t.weight_sq = weight_many.rows(i, i + 1);
      together.push_back({t, scalars});
    }
    run([&](Ops& ops) {
      for (size_t i = 0; i < kCount; ++i) {
        ops.sum_squares(single.rows(static_cast<int64_t>(i), static_cast<int64_t>(i) + 1), grads[i]);
        ops.adamw({&one_by_one[i], 1});
      }
    });
    run([&](Ops& ops) { ops.sum_squares(many, grads), ops.adamw(together); });
    EXPECT_TRUE(same_bits(single, many) && same_bits(weight_single, weight_many)) << name_of(dtype);
    for (size_t i = 0; i < kCount; ++i) {
      const AdamwTensors &a = one_by_one[i].tensors, &b = together[i].tensors;
      EXPECT_TRUE(same_bits(a.weight, b.weight) && same_bits(a.m, b.m) && same_bits(a.v, b.v)) << name_of(dtype) << " tensor " << i;
      EXPECT_TRUE(!a.master.defined() || same_bits(a.master, b.master)) << "master " << i;
    }
  }
}

// What a recorded step relies on: the call stays as it is; learning rate, bias corrections and noise follow the tensor.
TEST_P(OpsProperty, AdamwReadsItsStepFromTheDevice) {
  const int64_t n = 1003;
  const auto zeros = [&](DType dtype) { return memory_.zeros(dtype, {n}); };
  const AdamwItem item{{.weight = zeros(DType::bf16),
                        .master = zeros(DType::f32),
                        .m = zeros(DType::f32),
                        .v = zeros(DType::f32),
                        .grad = memory_.random(DType::f32, {n}, "g"),
                        .scale = vector(DType::f32, {1}),
                        .step = memory_.zeros(DType::f64, {kAdamwStep}),
                        .weight_sq = memory_.zeros(DType::f64, {1})},
                       {.eps = 0, .round_weights = Rounding::stochastic, .round_moments = Rounding::stochastic, .seed = 5, .stream = 6}};
  const AdamwTensors& t = item.tensors;
  for (const auto& [lr, number] : {std::pair{1e-2, 1}, {3e-3, 1}, {1e-2, 9}, {1e-2, 1 << 20}}) {
    from_f64(t.step, to_f64(adamw_step(lr, number)));
    run([&](Ops& ops) {
      for (const Tensor& x : {t.master, t.m, t.v}) ops.fill(x, 0);
      ops.adamw({&item, 1});
    });
    // Without history m = 0.1 g and v = 0.05 g^2.
    const double update = lr * 0.1 / (1 - std::pow(0.9, number)) / std::sqrt(0.05 / (1 - std::pow(0.95, number)));
    const NoiseKey key{.seed = 5, .stream = 6, .purpose = Noise::round_weight, .step = static_cast<uint32_t>(number)};
    for (int64_t i = 0; i < n; ++i) {
      const float master = t.master.as<float>()[i];
      ASSERT_NEAR(static_cast<double>(master), -std::copysign(update, load_f64(t.grad, i)), 1e-5 * update) << lr << ", step " << number;
      ASSERT_EQ(t.weight.as<bf16>()[i].bits, to_bf16_stochastic(master, noise_at(key, i)).bits) << "step " << number << ", element " << i;
    }
  }
}

// A later token, however large, leaves no trace in an earlier output; neither does another sequence.
TEST_P(OpsProperty, AttentionDoesNotLookAhead) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const AttentionShape s{.batch = 2, .seq = 150, .heads = 4, .kv_heads = 2, .head_dim = 24};
    const Tensor qkv = memory_.random(dtype, {s.tokens(), s.qkv_width()}, "qkv");
    const Tensor before = memory_.zeros(dtype, {s.tokens(), s.out_width()}), after = memory_.zeros(dtype, {s.tokens(), s.out_width()});
    const Tensor lse = memory_.zeros(DType::f32, {s.batch, s.heads, s.seq}), lse_after = memory_.zeros(DType::f32, lse.shape);
    run([&](Ops& ops) { ops.attention(before, lse, qkv, s); });
    for (const int64_t changed : {int64_t{149}, int64_t{128}, int64_t{70}, int64_t{64}, int64_t{1}}) {
      const Tensor other = memory_.copy(dtype, qkv);
      for (int64_t i = 0; i < s.qkv_width(); ++i) store_f64(other, changed * s.qkv_width() + i, changed == 70 ? 1e30 : 50.0);
      run([&](Ops& ops) { ops.attention(after, lse_after, other, s); });
      EXPECT_TRUE(same_bits(before.rows(0, changed), after.rows(0, changed))) << name_of(dtype) << " token " << changed;
      EXPECT_TRUE(same_bits(before.rows(s.seq, s.tokens()), after.rows(s.seq, s.tokens()))) << "the other sequence, token " << changed;
      EXPECT_FALSE(same_bits(before.rows(changed, changed + 1), after.rows(changed, changed + 1)));
      for (int64_t h = 0; h < s.heads; ++h)
        EXPECT_EQ(std::memcmp(lse.as<float>() + h * s.seq, lse_after.as<float>() + h * s.seq, static_cast<size_t>(changed) * sizeof(float)),
                  0);
    }
  }
}

// The ops with reductions, where an order that depends on timing or on the number of threads would show. t: data, gradients f32.
std::vector<Tensor> reductions(HostMemory& memory, DType t, const std::function<void(const std::function<void(Ops&)>&)>& run,
                               bool with_matmul) {
  const AttentionShape s{.batch = 2, .seq = 200, .heads = 4, .kv_heads = 1, .head_dim = 32};
  const int64_t n = s.tokens(), d = s.out_width(), v = 501;
  const Tensor qkv = memory.random(t, {n, s.qkv_width()}, "qkv"), out = memory.zeros(t, {n, d}),
               lse = memory.zeros(DType::f32, {s.batch, s.heads, s.seq});
  const Tensor dout = memory.random(t, {n, d}, "dout"), dqkv = memory.zeros(t, qkv.shape), x = memory.random(t, {n, d}, "x");
  const Tensor w = memory.random(t, {d}, "w"), y = memory.zeros(t, {n, d}), rstd = memory.zeros(DType::f32, {n}),
               dx = memory.zeros(t, {n, d});
  const Tensor dw = memory.zeros(DType::f32, {d}), product = memory.zeros(DType::f32, {d, d}), sq = memory.zeros(DType::f64, {1});
  const Tensor logits = memory.random(t, {n, v}, "logits"), stats = memory.zeros(DType::f32, {n, 3}), loss = memory.zeros(DType::f64, {1});
  const Tensor ids = memory.zeros(DType::i32, {n}), dtable = memory.zeros(DType::f32, {3, d}), mark = memory.zeros(DType::i32, {2});
  run([&](Ops& ops) {
    ops.attention(out, lse, qkv, s);
    ops.attention_bwd(dqkv, dout, out, lse, qkv, s);
    ops.rmsnorm(y, rstd, x, w, 1e-5);
    ops.rmsnorm_bwd(dx, dw, dout, x, w, rstd, {});
    ops.embed_bwd(dtable, ids, dout, 0);
    ops.sum_squares(sq, logits);
    ops.checksum(mark, logits);
    ops.cross_entropy_partial(stats, logits, ids, 0);
    ops.cross_entropy_finish(loss, stats, ids);
    if (with_matmul) ops.matmul(product, dout, x, {.trans_a = true});
  });
  return {out, lse, dqkv, y, dx, dw, dtable, sq, mark, stats, loss, product};
}

TEST_P(OpsProperty, TheSameCallGivesTheSameBits) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const auto once = [&] {
      return reductions(
          memory_, dtype, [&](const auto& body) { run(body); }, true);
    };
    const std::vector<Tensor> a = once(), b = once();
    for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(same_bits(a[i], b[i])) << "result " << i << " " << a[i].str();
  }
}

TEST_P(OpsProperty, AMeasuredUpdateHasTheSameBits) {
  for (int bits = 0; bits < 16; ++bits) {
    const auto type = [&](int bit) { return (bits & bit) != 0 ? DType::bf16 : DType::f32; };
    const bool master = type(1) == DType::bf16 && (bits & 2) == 0;
    for (const int64_t n : {1, 37, 9001}) {
      const auto update = [&](bool measured) {
        AdamwTensors t{.weight = memory_.random(type(1), {n}, "w"),
                       .master = master ? memory_.random(DType::f32, {n}, "w") : Tensor{},
                       .m = memory_.random(type(2), {n}, "m"),
                       .v = memory_.random(type(2), {n}, "v"),
                       .grad = memory_.random(type(4), {n}, "g"),
                       .scale = memory_.from(DType::f32, {1}, {0.5}),
                       .step = memory_.from(DType::f64, {kAdamwStep}, {1e-2, 1.5, 1.25, 3}),
                       .weight_sq = memory_.zeros(DType::f64, {1}),
                       .change = measured ? memory_.zeros(DType::f64, {kAdamwChange}) : Tensor{}};
        for (int64_t i = 0; i < n; ++i) store_f64(t.v, i, std::abs(load_f64(t.v, i)));
        const Rounding rounding = (bits & 8) != 0 ? Rounding::stochastic : Rounding::nearest;
        const AdamwScalars s{.weight_decay = 0.1f, .round_weights = rounding, .round_moments = rounding, .seed = 5};
        run([&](Ops& ops) { adamw(ops, t, s); });
        return t;
      };
      const AdamwTensors plain = update(false), measured = update(true);
      EXPECT_TRUE(same_bits(plain.weight, measured.weight) && same_bits(plain.m, measured.m) && same_bits(plain.v, measured.v) &&
                  same_bits(plain.weight_sq, measured.weight_sq) && (!master || same_bits(plain.master, measured.master)))
          << "variant " << bits << " of " << n;
    }
  }
}

// NaN is seen wherever it stands and stays; out starts above, below and at what is there.
TEST_P(OpsProperty, TheLargestValueIsExact) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const int64_t n : {1, 15, 16, 1000, 50001}) {
      const Tensor x = memory_.zeros(dtype, {n}), out = memory_.from(DType::f64, {1}, {-10});
      const auto largest = [&](bool absolute) {
        run([&](Ops& ops) { ops.largest(out, x, absolute); });
        return load_f64(out, 0);
      };
      for (int64_t i = 0; i < n; ++i) store_f64(x, i, -4);
      EXPECT_EQ(largest(false), -4);
      EXPECT_EQ(largest(true), 4);
      EXPECT_EQ(largest(false), 4);  // not above what was there
      store_f64(x, n - 1, -64);
      EXPECT_EQ(largest(true), 64);
      store_f64(x, n / 2, std::nan(""));
      EXPECT_TRUE(std::isnan(largest(false)));
      store_f64(x, n / 2, 1e9);
      EXPECT_TRUE(std::isnan(largest(true)));
    }
}

// Long enough for many blocks of keys, which a GPU works on at the same time and in any order.
TEST_P(OpsProperty, TheSameAttentionBackwardGivesTheSameBits) {
  for (const AttentionShape& s : {AttentionShape{2, 700, 4, 2, 64}, AttentionShape{1, 500, 3, 3, 128}}) {
    const Tensor qkv = memory_.random(DType::bf16, {s.tokens(), s.qkv_width()}, "qkv");
    const Tensor out = memory_.zeros(DType::bf16, {s.tokens(), s.out_width()}), dout = memory_.random(DType::bf16, out.shape, "dout");
    const Tensor lse = memory_.zeros(DType::f32, {s.batch, s.heads, s.seq}), rope = memory_.zeros(DType::f32, {s.seq, s.head_dim});
    const Tensor first = memory_.zeros(DType::bf16, qkv.shape), again = memory_.zeros(DType::bf16, qkv.shape);
    run([&](Ops& ops) {
      ops.rope_table(rope, {});
      ops.attention(out, lse, qkv, s);
      ops.attention_bwd(first, dout, out, lse, qkv, s, rope);
    });
    for (int i = 0; i < 5; ++i) {
      run([&](Ops& ops) { ops.attention_bwd(again, dout, out, lse, qkv, s, rope); });
      EXPECT_TRUE(same_bits(first, again)) << "head size " << s.head_dim << ", repetition " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, OpsProperty, ::testing::ValuesIn(test_backends()), [](const auto& p) { return p.param.name; });

// Own kernels cut reductions by size alone, the own matmul too. (The matmul library may cut by threads.)
TEST(CpuOpsTest, ThreadsDoNotChangeResults) {
  HostMemory memory;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const auto with_threads = [&](int threads) {
      Region temp = memory.region(Purpose::temp, size_t{64} << 20);
      CpuOps ops(temp, {.threads = threads, .isa = "auto"});
      return reductions(
          memory, dtype, [&](const auto& body) { body(ops); }, dtype == DType::bf16 && select_kernels("auto").gemm_block != nullptr);
    };
    const std::vector<Tensor> one = with_threads(1);
    for (const int threads : {2, 3}) {
      const std::vector<Tensor> more = with_threads(threads);
      for (size_t i = 0; i < one.size(); ++i)
        EXPECT_TRUE(same_bits(one[i], more[i])) << "result " << i << " " << one[i].str() << ", " << threads << " threads";
    }
  }
}

}  // namespace
}  // namespace hlat
