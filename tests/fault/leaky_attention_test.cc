// The planted mask that leaks one token: what a query sees, its backward against differences, and that it is a fault of a run: the probe
// sees it, and a model trains through it.
#include "fault/leaky_attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fault/injector.h"
#include "ops/download.h"
#include "support/real_run.h"
#include "support/temp_dir.h"

namespace hlat::fault {
namespace {

constexpr AttentionShape kShape{.batch = 2, .seq = 5, .heads = 4, .kv_heads = 2, .head_dim = 4};

struct LeakyRow {
  LeakyRow()
      : qkv(static_cast<size_t>(kShape.tokens() * kShape.qkv_width())), dout(static_cast<size_t>(kShape.tokens() * kShape.out_width())) {
    RandomStream s({.seed = 3, .stream = hash_name("leaky"), .purpose = Noise::data});
    for (float& x : qkv) x = static_cast<float>(s.below(1000)) / 500 - 1;
    for (float& x : dout) x = static_cast<float>(s.below(1000)) / 500 - 1;
    attention.place(device);
  }
  static Tensor view(std::vector<float>& values, int64_t width) {
    return Tensor::contiguous(values.data(), DType::f32, {kShape.tokens(), width});
  }
  std::vector<float> out() {
    std::vector<float> y(dout.size()), lse(static_cast<size_t>(kShape.batch * kShape.heads * kShape.seq));
    attention.forward(view(y, kShape.out_width()), Tensor::contiguous(lse.data(), DType::f32, {kShape.batch, kShape.heads, kShape.seq}),
                      view(qkv, kShape.qkv_width()), kShape);
    return y;
  }

  CpuDevice device;
  LeakyAttention attention;
  std::vector<float> qkv, dout;
};

// Query t of a leaky mask is query t + 1 of a sound one that has its vector; the last one has no key after its own.
TEST(LeakyAttention, AQuerySeesTheKeyAfterItsOwnAndNoLaterOne) {
  LeakyRow row;
  const std::vector<float> leaky = row.out();
  const auto sound = [&](const std::vector<float>& qkv_of) {
    MemoryPlan plan;
    plan.bytes[static_cast<size_t>(Purpose::temp)] = size_t{1} << 20;
    CpuBackend backend({.threads = 1});
    PlannedMemory memory(backend.device(), plan);
    const auto ops = backend.make_ops(memory.memory()[Purpose::temp]);
    std::vector<float> in = qkv_of, y(row.dout.size()), lse(static_cast<size_t>(kShape.batch * kShape.heads * kShape.seq));
    ops->attention(LeakyRow::view(y, kShape.out_width()),
                   Tensor::contiguous(lse.data(), DType::f32, {kShape.batch, kShape.heads, kShape.seq}),
                   LeakyRow::view(in, kShape.qkv_width()), kShape);
    return y;
  };
  std::vector<float> moved = row.qkv;
  const int64_t width = kShape.qkv_width(), queries = kShape.heads * kShape.head_dim;
  for (int64_t n = kShape.tokens() - 1; n > 0; --n)
    if (n % kShape.seq != 0) std::copy_n(row.qkv.begin() + (n - 1) * width, queries, moved.begin() + n * width);
  const std::vector<float> ahead = sound(moved), plain = sound(row.qkv);
  for (int64_t n = 0; n < kShape.tokens(); ++n)
    for (int64_t i = 0; i < kShape.out_width(); ++i) {
      const bool last = (n + 1) % kShape.seq == 0;
      const float expected = (last ? plain : ahead)[static_cast<size_t>((last ? n : n + 1) * kShape.out_width() + i)];
      EXPECT_NEAR(leaky[static_cast<size_t>(n * kShape.out_width() + i)], expected, 1e-5) << n << " " << i;
    }
}

TEST(LeakyAttention, ItsBackwardIsThatOfItsForward) {
  LeakyRow row;
  std::vector<float> d(row.qkv.size());
  row.attention.backward(LeakyRow::view(d, kShape.qkv_width()), LeakyRow::view(row.dout, kShape.out_width()),
                         LeakyRow::view(row.qkv, kShape.qkv_width()), kShape);
  const auto value = [&] {
    const std::vector<float> y = row.out();
    double sum = 0;
    for (size_t i = 0; i < y.size(); ++i) sum += static_cast<double>(y[i]) * row.dout[i];
    return sum;
  };
  constexpr float kDistance = 1e-2F;
  for (size_t i = 0; i < row.qkv.size(); i += 3) {
    const float x = row.qkv[i];
    row.qkv[i] = x + kDistance;
    const double above = value();
    row.qkv[i] = x - kDistance;
    const double below = value();
    row.qkv[i] = x;
    EXPECT_NEAR(d[i], (above - below) / (2 * kDistance), 2e-4) << i;
  }
}

// One rank that trains with planted faults.
struct LeakyRun {
  LeakyRun(Config config, const std::string& inject) : run(config, cpu_device("auto", 1)) {
    config.run.dir = dir.path("run");
    config.fault.inject = inject;
    injector.emplace(config, InjectorSetup{.rank = 0, .ranks = 1});
    injector->place(run.model().mesh(), run.executor().params(), run.device(), 100);
    run.train().inject(*injector);
  }
  double leak_after(int64_t step) {
    injector->at_step(step);
    run.step(step);
    run.check_used();
    const Config& c = run.executor().config();
    Batch batch(c.train.micro_batch, c.train.seq_len);
    for (size_t i = 0; i < batch.inputs.size(); ++i) batch.inputs[i] = batch.targets[i] = static_cast<int32_t>(i * 7 % 97);
    Monitors m;
    run.train().probe().run(&batch, m);
    return *m.leak;
  }

  test::TempDir dir;
  RealRun run;
  std::optional<Injector> injector;
};

TEST(LeakyAttention, TheProbeSeesItForItsStepsInEveryPrecision) {
  using enum PrecisionKind;
  for (const PrecisionKind precision : {fp32, mixed, bf16_sr}) {
    Config c = tiny_config();
    c.train.precision = precision;
    LeakyRun f(c, "leak step=2 steps=2");
    EXPECT_EQ(f.leak_after(1), 0) << name_of(precision);
    EXPECT_GT(f.leak_after(2), 0) << name_of(precision);
    EXPECT_GT(f.leak_after(3), 0) << name_of(precision);
    EXPECT_EQ(f.leak_after(4), 0) << name_of(precision);
  }
}

TEST(LeakyAttention, RecomputationHasTheSameBits) {
  std::vector<std::byte> weights;
  for (const char* policy : {"none", "full"}) {
    Config c = tiny_config();
    ASSERT_TRUE(parse_recompute(policy, c.train.recompute));
    LeakyRun f(c, "leak");
    for (int64_t step = 1; step <= 2; ++step) f.leak_after(step);
    if (weights.empty()) weights = f.run.weight_bytes();
    EXPECT_EQ(f.run.weight_bytes(), weights) << policy;
  }
}

}  // namespace
}  // namespace hlat::fault
