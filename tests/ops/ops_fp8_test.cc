// FP8 on every backend of this machine, beside the rows of the conformance table: scales step by step, updates that are left out, tensors
// without elements, and that the number of threads changes nothing.
#include <cmath>
#include <limits>

#include "backend/cpu/cpu_ops.h"
#include "ops/conformance_fp8_cases.h"
#include "support/ops_fixture.h"

namespace hlat {
namespace {

class OpsFp8 : public OpsFixture {
 protected:
  // One tensor, one rank.
  Tensor scale_ = memory_.from(DType::f32, {1, kFp8Scale}, {8, 0, 0, 0, 0.125, 0, 0, 0});
  Tensor history_ = memory_.zeros(DType::f32, {1, kFp8History});

  // The scale after a step in which `largest` was seen.
  double after(int64_t number, double largest, double limit = 448) {
    const Tensor seen = memory_.from(DType::f64, {1, 1, kFp8Seen}, {largest, 0, 0});
    const Tensor limits = memory_.from(DType::f32, {1}, {limit}), step = adamw_step(1e-3, number);
    run([&](Ops& ops) { ops.fp8_scales(scale_, history_, seen, limits, step); });
    EXPECT_EQ(load_f64(scale_, 0) * load_f64(scale_, kFp8Inverse), 1);
    return load_f64(scale_, 0);
  }
};

TEST_P(OpsFp8, AScaleIsTheLargestThatFits) {
  struct Fit {
    double largest, limit, scale;
  };
  const std::vector<Fit> fits = {{448, 448, 1},
                                 {std::nextafter(448.0f, 1e9f), 448, 0.5},
                                 {std::nextafter(448.0f, 0.0f), 448, 1},
                                 {224, 448, 2},
                                 {256, 256, 1},
                                 {1, 256, 256},
                                 {57344, 57344, 1},
                                 {1, 57344, 32768},
                                 {1.75, 57344, 32768},
                                 {1.5, 448, 256},
                                 {1.875, 448, 128},
                                 {0x1p-133, 448, 0x1p60},
                                 {3e38, 1, 0x1p-60},
                                 {0x1p-60, 0.5, 0x1p59},
                                 {0x1p-52, 256, 0x1p60}};
  for (const Fit& f : fits) {
    run([&](Ops& ops) { ops.fill(history_, 0); });
    EXPECT_EQ(after(1, f.largest, f.limit), f.scale) << f.largest << " within " << f.limit;
  }
}

TEST_P(OpsFp8, TheLargestOfTheLastSixteenStepsDecides) {
  EXPECT_EQ(after(1, 448), 1);
  for (int64_t step = 2; step <= 16; ++step) EXPECT_EQ(after(step, 7), 1) << step;
  EXPECT_EQ(after(17, 7), 64);  // the first step is forgotten
  EXPECT_EQ(after(18, 14), 32);
  EXPECT_EQ(load_f64(history_, 1), 14);
  EXPECT_EQ(after(19, 0), 32);
  EXPECT_EQ(load_f64(history_, 2), 0);
}

TEST_P(OpsFp8, NothingIsLearnedFromZerosOrFromWhatIsNotFinite) {
  for (int64_t step = 1; step <= 20; ++step) EXPECT_EQ(after(step, 0), 8);
  EXPECT_EQ(after(21, 28), 16);
  const std::vector<double> before = to_f64(history_);
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()})
    for (int64_t step = 22; step <= 40; ++step) EXPECT_EQ(after(step, bad), 16);
  EXPECT_EQ(to_f64(history_), before);
}

TEST_P(OpsFp8, EveryRankIsAsked) {
  const Tensor scale = memory_.zeros(DType::f32, {2, kFp8Scale}), history = memory_.zeros(DType::f32, {2, kFp8History});
  const Tensor limit = memory_.from(DType::f32, {2}, {448, 448}), step = adamw_step(1e-3, 5);
  const Tensor seen = memory_.from(DType::f64, {3, 2, kFp8Seen}, {1, 9, 9, 7, 9, 9, 448, 9, 9, 1, 9, 9, 3, 9, 9, std::nan(""), 9, 9});
  run([&](Ops& ops) { ops.fp8_scales(scale, history, seen, limit, step); });
  EXPECT_EQ(to_f64(scale), (std::vector<double>{1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  std::vector<double> expected(32);
  expected[4] = 448;
  EXPECT_EQ(to_f64(history), expected);
}

// The factor of the update that follows decides whether what was seen counts, not how much.
TEST_P(OpsFp8, ScalesOfAnUpdateThatIsLeftOutStayAsTheyAre) {
  const Tensor seen = memory_.from(DType::f64, {2, kFp8Seen}, {448, 1, 2, 3, 4, 5}), own = seen.rows(1, 2);
  const Tensor other = memory_.from(DType::f64, {1, kFp8Seen}, {7, 8, 9});
  const Tensor scale = memory_.from(DType::f32, {2, kFp8Scale}, std::vector<double>(2 * kFp8Scale, 8)),
               history = memory_.from(DType::f32, {2, kFp8History}, std::vector<double>(2 * kFp8History, 1));
  const Tensor limit = memory_.from(DType::f32, {2}, {448, 448}), step = adamw_step(1e-3, 2), clip = memory_.zeros(DType::f32, {1});
  const auto scales = [&](double factor, const Tensor& reset) {
    store_f64(clip, 0, factor);
    run([&](Ops& ops) { ops.fp8_scales(scale, history, seen.viewed({1, 2, kFp8Seen}), limit, step, clip, reset); });
  };
  for (const Tensor& reset : {Tensor{}, own, other}) {
    scales(std::nan(""), reset);
    EXPECT_EQ(to_f64(scale), std::vector<double>(2 * kFp8Scale, 8));
    EXPECT_EQ(to_f64(history), std::vector<double>(2 * kFp8History, 1));
    EXPECT_EQ(to_f64(seen), (std::vector<double>{448, 1, 2, 3, 4, 5}));
    EXPECT_EQ(to_f64(other), (std::vector<double>{7, 8, 9}));
  }
  scales(1e-3, other);
  for (const auto& [place, value] : {std::pair{0, 1}, {1, 128}}) {
    EXPECT_EQ(load_f64(scale, place * kFp8Scale), value);
    EXPECT_EQ(load_f64(scale, place * kFp8Scale + kFp8Inverse), 1.0 / value);
    EXPECT_EQ(load_f64(history, place * kFp8History + 1), place == 0 ? 448 : 3);
  }
  EXPECT_EQ(to_f64(other), std::vector<double>(kFp8Seen, 0));
  EXPECT_EQ(to_f64(seen), (std::vector<double>{448, 1, 2, 3, 4, 5}));
  scales(1, own);
  EXPECT_EQ(load_f64(scale, kFp8Scale), 128) << "reset is read before it is set to 0";
  EXPECT_EQ(to_f64(seen), (std::vector<double>{448, 1, 2, 0, 0, 0}));
}

// What an update without a clip scale must not touch.
TEST_P(OpsFp8, AnUpdateThatIsLeftOutChangesNothing) {
  constexpr int64_t n = 9001;
  for (const DType master : {DType::f32, DType::bf16}) {
    const AdamwTensors t{.weight = memory_.random(DType::f8e4m3, {n}, "old"),
                         .master = memory_.random(master, {n}, "w"),
                         .m = memory_.random(DType::f32, {n}, "m"),
                         .v = memory_.zeros(DType::f32, {n}),
                         .grad = memory_.random(DType::bf16, {n}, "g"),
                         .scale = memory_.from(DType::f32, {1}, {std::nan("")}),
                         .step = adamw_step(1e-2, 3),
                         .weight_sq = memory_.zeros(DType::f64, {1}),
                         .change = memory_.zeros(DType::f64, {kAdamwChange}),
                         .fp8_scale = memory_.from(DType::f32, {kFp8Scale}, {1, 0, 0, 0, 1, 0, 0, 0}),
                         .fp8_seen = memory_.from(DType::f64, {kFp8Seen}, {0.5, 1, 2})};
    std::vector<Tensor> before;
    const std::vector<Tensor> kept = {t.weight, t.master, t.m, t.v, t.fp8_seen};
    for (const Tensor& k : kept) {
      before.push_back(memory_.zeros(k.dtype, k.shape));
      std::memcpy(before.back().data, k.data, k.bytes());
    }
    run([&](Ops& ops) { adamw(ops, t, {}); });
    for (size_t i = 0; i < kept.size(); ++i) EXPECT_TRUE(same_bits(kept[i], before[i])) << i << " " << kept[i].str();
    EXPECT_TRUE(std::isnan(load_f64(t.weight_sq, 0)) && std::isnan(load_f64(t.change, 0)));
  }
}

// Two tensors in one call: each has its own scale and its own count.
TEST_P(OpsFp8, TensorsOfOneUpdateHaveTheirOwnScales) {
  std::vector<AdamwItem> items;
  const Tensor clip = memory_.from(DType::f32, {1}, {1}), step = adamw_step(0, 1);
  for (const double scale : {1.0, 1024.0}) {
    const auto filled = [&](DType type, double value) { return memory_.from(type, {100}, std::vector<double>(100, value)); };
    items.push_back({.tensors = {.weight = filled(DType::f8e4m3, 0),
                                 .master = filled(DType::f32, 0.75),
                                 .m = filled(DType::f32, 0),
                                 .v = filled(DType::f32, 0),
                                 .grad = filled(DType::f32, 0),
                                 .scale = clip,
                                 .step = step,
                                 .weight_sq = memory_.zeros(DType::f64, {1}),
                                 .fp8_scale = memory_.from(DType::f32, {kFp8Scale}, {scale, 0, 0, 0, 1 / scale, 0, 0, 0}),
                                 .fp8_seen = memory_.zeros(DType::f64, {kFp8Seen})},
                     .scalars = {}});
  }
  run([&](Ops& ops) { ops.adamw(items); });
  EXPECT_EQ(to_f64(items[0].tensors.weight), std::vector<double>(100, 0.75));
  EXPECT_EQ(to_f64(items[1].tensors.weight), std::vector<double>(100, 448));
  EXPECT_EQ(to_f64(items[0].tensors.fp8_seen), (std::vector<double>{0.75, 0, 0}));
  EXPECT_EQ(to_f64(items[1].tensors.fp8_seen), (std::vector<double>{0.75, 100, 0}));
}

TEST_P(OpsFp8, TensorsWithoutElements) {
  const Tensor scale = memory_.from(DType::f32, {kFp8Scale}, {1, 0, 0, 0, 1, 0, 0, 0}),
               seen = memory_.from(DType::f64, {kFp8Seen}, {1, 2, 3});
  const auto t8 = [&](const Shape& shape) { return memory_.zeros(DType::f8e4m3, shape); };
  const auto t16 = [&](const Shape& shape) { return memory_.zeros(DType::bf16, shape); };
  const Tensor kept = memory_.random(DType::f32, {16, 32}, "c"), cleared = memory_.random(DType::f32, {16, 32}, "c");
  const std::vector<double> before = to_f64(kept);
  run([&](Ops& ops) {
    const Fp8Store out{t8({0, 6}), t8({6, 0}), scale, seen};
    const Tensor rstd = memory_.zeros(DType::f32, {0}), w = t16({6});
    ops.quantize(out, t16({0, 6}));
    ops.rmsnorm_fp8(out, {}, rstd, t16({0, 6}), w, 0);
    ops.add_rmsnorm_fp8(out, t16({0, 6}), {}, rstd, t16({0, 6}), t16({0, 6}), w, 0);
    ops.swiglu_fp8(out, {}, t16({0, 12}));
    ops.swiglu_bwd_fp8(out, {}, t16({0, 3}), t16({0, 6}));
    ops.quantize_flat(t8({0}), t16({0}), scale, seen);
    ops.transpose(t8({6, 0}), t8({0, 6}));
    ops.dequantize(t16({0, 6}), t8({0, 6}), scale);
    ops.fill(t8({0}), 1);
    for (const bool accumulate : {false, true})
      ops.matmul_fp8(accumulate ? kept : cleared, {t8({16, 0}), scale}, {t8({32, 0}), scale}, {}, {.accumulate = accumulate});
    ops.matmul_fp8(memory_.zeros(DType::bf16, {0, 32}), {t8({0, 16}), scale}, {t8({32, 16}), scale}, {}, {});
  });
  EXPECT_EQ(to_f64(seen), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(to_f64(kept), before);
  EXPECT_EQ(to_f64(cleared), std::vector<double>(16 * 32, 0));
}

TEST_P(OpsFp8, FillAndChecksum) {
  for (const DType type : {DType::f8e4m3, DType::f8e5m2}) {
    const Tensor t = memory_.random(type, {1003}, "t"), mark = memory_.zeros(DType::i32, {2}), bytes = memory_.zeros(DType::i32, {2});
    RefOps ref(temp_);
    run([&](Ops& ops) { ops.checksum(mark, t); });
    ref.checksum(bytes, t);
    EXPECT_TRUE(same_bits(mark, bytes));
    for (const double value : {0.0, -1.75}) {
      run([&](Ops& ops) { ops.fill(t, value); });
      EXPECT_EQ(to_f64(t), std::vector<double>(1003, value));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, OpsFp8, ::testing::ValuesIn(test_backends()), [](const auto& p) { return p.param.name; });

// The counts as well: they are exact in any order.
TEST(CpuOpsTest, ThreadsDoNotChangeFp8) {
  HostMemory memory;
  const int64_t n = 401, width = 517;
  const std::vector<double> values = all_kinds(n * width, 4, false, "x");
  const auto with_threads = [&](int threads) {
    Region temp = memory.region(Purpose::temp, size_t{1} << 20);
    CpuOps ops(temp, {.threads = threads, .isa = "auto"});
    const Fp8Store out{memory.zeros(DType::f8e4m3, {n, width}), memory.zeros(DType::f8e4m3, {width, n}),
                       memory.from(DType::f32, {kFp8Scale}, {4, 0, 0, 0, 0.25, 0, 0, 0}), memory.zeros(DType::f64, {kFp8Seen})};
    const Tensor flat = memory.zeros(DType::f8e5m2, {n * width}), seen = memory.zeros(DType::f64, {kFp8Seen}),
                 back = memory.zeros(DType::f8e4m3, {n, width}), wide = memory.zeros(DType::bf16, {n, width});
    ops.quantize(out, memory.from(DType::bf16, {n, width}, values));
    ops.quantize_flat(flat, memory.from(DType::f32, {n * width}, values), out.scale, seen);
    ops.transpose(back, out.columns);
    ops.dequantize(wide, out.rows, out.scale);
    EXPECT_TRUE(same_bits(back, out.rows));
    return std::vector<Tensor>{out.rows, out.columns, out.seen, flat, seen, wide};
  };
  const std::vector<Tensor> one = with_threads(1);
  for (const int threads : {2, 3}) {
    const std::vector<Tensor> more = with_threads(threads);
    for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(same_bits(one[i], more[i])) << one[i].str() << ", " << threads << " threads";
  }
}

}  // namespace
}  // namespace hlat
