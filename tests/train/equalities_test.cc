// The equalities of the design that need one rank.
#include <gtest/gtest.h>

#include <cmath>

#include "support/precision_rows.h"
#include "support/real_run.h"

namespace hlat {
namespace {

const std::vector<PrecisionChoice> kPrecisions = [] {
  std::vector<PrecisionChoice> rows = preset_rows();
  for (const PrecisionChoice& row : plain_rows()) rows.push_back(row);
  for (const PrecisionChoice& row : fp8_rows()) rows.push_back(row);
  return rows;
}();
const std::vector<Recompute> kPolicies = {
    {RecomputeKind::none, 0}, {RecomputeKind::selective, 0}, {RecomputeKind::full, 0}, {RecomputeKind::full, 2}};

Config with(const PrecisionChoice& precision, const Recompute& recompute) {
  Config c = tiny_config();
  precision.apply(c);
  fit_fp8(c);
  c.train.recompute = recompute;
  return c;
}

class EqualitiesOn : public ::testing::TestWithParam<TestDevice> {};
class StepOn : public ::testing::TestWithParam<TestDevice> {};

const auto name_of_device = [](const auto& p) { return p.param.name; };
INSTANTIATE_TEST_SUITE_P(Devices, EqualitiesOn, ::testing::ValuesIn(test_devices()), name_of_device);
INSTANTIATE_TEST_SUITE_P(Devices, StepOn, ::testing::ValuesIn(test_devices()), name_of_device);

TEST_P(EqualitiesOn, PlanIsTheHighWaterMarkForEveryPolicy) {
  for (const PrecisionChoice& precision : kPrecisions)
    for (const Recompute& recompute : kPolicies) {
      RealRun run(with(precision, recompute), GetParam());
      run.step(1);
      run.step(2);
      EXPECT_NO_THROW(run.check_used()) << precision.words() << " " << recompute.str();
      for (const Purpose p : {Purpose::weight, Purpose::grad, Purpose::optimizer, Purpose::saved, Purpose::temp, Purpose::io})
        EXPECT_GT(run.model().high_water()[p], 0u) << name_of(p);
    }
}

TEST(Equalities, ADifferentPlanIsNoticed) {
  RealRun run(tiny_config());
  run.step(1);
  MemoryPlan used = run.model().high_water();
  used.bytes[3] += 1;
  EXPECT_THROW(run.plan().check_used(used, run.model().mesh()), CheckFailed);
}

TEST_P(EqualitiesOn, RecomputeGivesBitIdenticalGradientsAndWeights) {
  for (const PrecisionChoice& precision : kPrecisions) {
    RealRun reference(with(precision, kPolicies[0]), GetParam());
    const double loss = reference.step(1).loss;
    const auto gradients = reference.grad_bytes(), weights = reference.weight_bytes();
    size_t most_saved = reference.model().high_water()[Purpose::saved];
    for (size_t i = 1; i < kPolicies.size(); ++i) {
      RealRun run(with(precision, kPolicies[i]), GetParam());
      EXPECT_EQ(run.step(1).loss, loss) << kPolicies[i].str();
      EXPECT_TRUE(run.grad_bytes() == gradients) << precision.words() << " " << kPolicies[i].str();
      EXPECT_TRUE(run.weight_bytes() == weights) << precision.words() << " " << kPolicies[i].str();
      EXPECT_LT(run.model().high_water()[Purpose::saved], most_saved) << "the policy saves nothing: " << kPolicies[i].str();
    }
  }
}

// Of the SwiGLU product, which every policy but the first makes twice: its input is read once more, and that is all.
TEST_P(EqualitiesOn, RecomputeStoresNoFormOfFp8Twice) {
  Config c = with({PrecisionKind::fp8}, {});
  const auto bytes = [&](const Recompute& recompute) {
    c.train.recompute = recompute;
    RealRun run(c, GetParam());
    run.step(1);
    return run.executor().ops().cost()[OpKind::swiglu].bytes;
  };
  const double input = 2.0 * static_cast<double>(c.train.global_batch * c.train.seq_len * 2 * c.model.ffn * c.model.layers);
  const double once = bytes(kPolicies[0]);
  for (const size_t policy : {1, 2}) EXPECT_EQ(bytes(kPolicies[policy]), once + input) << kPolicies[policy].str();
}

TEST_P(EqualitiesOn, TheSameRunTwiceIsBitIdentical) {
  for (const PrecisionChoice& precision : kPrecisions) {
    RealRun a(with(precision, {}), GetParam()), b(with(precision, {}), GetParam());
    for (int64_t step = 1; step <= 3; ++step) EXPECT_EQ(a.step(step).loss, b.step(step).loss);
    EXPECT_TRUE(a.weight_bytes() == b.weight_bytes()) << precision.words();
  }
}

// On a device that does not record both runs are the same code.
TEST_P(EqualitiesOn, ARecordedStepIsTheStep) {
  for (const PrecisionChoice& precision : kPrecisions) {
    Config plain = with(precision, {}), recorded = plain;
    plain.device.graphs = false;
    recorded.device.graphs = true;
    RealRun a(plain, GetParam()), b(recorded, GetParam());
    for (int64_t step = 1; step <= 4; ++step) {
      const StepResult x = a.step(step), y = b.step(step);
      EXPECT_EQ(x.loss, y.loss);
      EXPECT_EQ(x.grad_norm, y.grad_norm);
    }
    EXPECT_TRUE(a.weight_bytes() == b.weight_bytes()) << precision.words();
    EXPECT_NO_THROW(b.check_used());
  }
}

TEST_P(EqualitiesOn, AnotherSeedIsAnotherRun) {
  Config c = tiny_config();
  RealRun a(c, GetParam());
  c.run.seed += 1;
  RealRun b(c, GetParam());
  EXPECT_FALSE(a.weight_bytes() == b.weight_bytes());
}

// Gradients of four sequences in micro-batches of 1, 2 or 4 differ only by the order of f32 sums: a few ulps of
// the largest terms, so 1e-5 of the gradient's norm is ample and still finds a wrong scale or a lost micro-batch.
TEST_P(EqualitiesOn, MicroBatchesAddUpToTheSameStep) {
  Config c = tiny_config();
  class SameRows : public BatchSource {
   public:
    explicit SameRows(const Config& config) : all_(4, config.train.seq_len) { RandomRows(config).read(0, all_); }
    void read(int64_t first, Batch& b) override {
      std::copy_n(all_.inputs.begin() + first * b.seq_len, b.inputs.size(), b.inputs.begin());
      std::copy_n(all_.targets.begin() + first * b.seq_len, b.targets.size(), b.targets.begin());
    }

   private:
    Batch all_;
  };
  SameRows same(c);
  std::vector<StepResult> results;
  for (const int64_t rows : {4, 2, 1}) {
    c.train.micro_batch = rows;
    RealRun run(c, GetParam());
    results.push_back(run.step(1, same));
  }
  for (size_t i = 1; i < results.size(); ++i) {
    EXPECT_NEAR(results[i].loss, results[0].loss, 1e-6);
    EXPECT_NEAR(results[i].grad_norm, results[0].grad_norm, 1e-5 * results[0].grad_norm);
  }
}

TEST_P(EqualitiesOn, NoInformationLeaksFromLaterTokens) {
  std::vector<PrecisionChoice> rows = fp8_rows();
  rows.insert(rows.end(), {{PrecisionKind::fp32}, {PrecisionKind::mixed}, hlat_7b_row()});
  for (const PrecisionChoice& precision : rows) {
    const Config c = with(precision, {});
    RealRun run(c, GetParam());
    const int64_t seq = c.train.seq_len;
    Batch batch(c.train.micro_batch, seq);
    RandomRows(c).read(0, batch);
    const std::vector<int32_t>& ids = batch.inputs;
    for (const int64_t length : {int64_t{1}, int64_t{5}, seq - 1}) {
      const auto before = run.executor().next_logits(ids, seq, length);
      auto changed = ids;
      for (int64_t r = 0; r < c.train.micro_batch; ++r)
        for (int64_t t = length; t < seq; ++t)
          changed[static_cast<size_t>(r * seq + t)] = (changed[static_cast<size_t>(r * seq + t)] + 7) % 101;
      EXPECT_EQ(run.executor().next_logits(changed, seq, length), before) << "length " << length;
      changed[static_cast<size_t>(length - 1)] = (changed[static_cast<size_t>(length - 1)] + 1) % 101;
      EXPECT_NE(run.executor().next_logits(changed, seq, length), before) << "the current token must matter";
    }
  }
}

TEST(Equalities, LongSequencesNeedNoScoreMatrix) {
  Config c = tiny_config();
  c.train.seq_len = 4096;
  c.train.micro_batch = c.train.global_batch = 1;
  c.model.heads = c.model.kv_heads = 2;
  CpuBackend backend({.threads = 2, .isa = "auto"});
  Region measuring;
  const auto model = backend.make_ops(measuring);
  const RankPlan plan = dry_run(c, {.scratch_model = model.get()});
  const size_t one_head = size_t{4096} * 4096 * sizeof(float);
  EXPECT_LT(plan.memory[Purpose::temp] + plan.memory[Purpose::saved], one_head);
}

TEST_P(StepOn, StopsBeforeTheUpdateWhenAGradientIsNotFinite) {
  RealRun run(tiny_config(), GetParam());
  run.step(1);
  const auto& params = run.executor().params();
  const float nan = std::nanf("");
  Tensor first = params.weight(4);
  first.shape = {1};
  run.device().upload(first, &nan);
  const auto weights = run.weight_bytes();
  try {
    run.step(2);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("step 2"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("layers."), std::string::npos) << e.what();
  }
  EXPECT_TRUE(run.weight_bytes() == weights) << "the optimizer ran on a bad gradient";
}

// All that an update changes: weights and their transposes, masters, moments, scales and their history.
std::vector<std::byte> state_of(RealRun& run) {
  const ParamStore& params = run.executor().params();
  std::vector<std::byte> all;
  const auto add = [&](const Tensor& t) {
    if (!t.defined()) return;
    all.resize(all.size() + t.bytes());
    run.device().download(all.data() + all.size() - t.bytes(), t);
  };
  for (const Bucket& b : params.buckets())
    for (const Tensor& t : {b.weight, b.transposed, b.master, b.m, b.v}) add(t);
  add(params.fp8_state().scales);
  add(params.fp8_state().history);
  return all;
}

TEST_P(StepOn, AGradientThatIsNotFiniteChangesNothingOfFp8) {
  for (const PrecisionChoice& precision : fp8_rows())
    for (const bool gated : {false, true}) {
      RealRun run(with(precision, {}), GetParam());
      run.step(1);
      const ParamStore& params = run.executor().params();
      for (ParamId id = 0; id < params.size(); ++id)
        if (params.spec(id).name == "layers.1.norm2") {
          const uint16_t nan = 0x7fc0;
          Tensor first = params.weight(id);
          ASSERT_EQ(first.dtype, DType::bf16);
          first.shape = {1};
          run.device().upload(first, &nan);
        }
      const std::vector<std::byte> before = state_of(run);
      if (gated) {
        run.train().before_updates([](int64_t, double, double) { return false; });
        EXPECT_TRUE(run.step(2).skipped);
      } else {
        EXPECT_THROW(run.step(2), NumericalError);
      }
      EXPECT_TRUE(state_of(run) == before) << precision.words() << (gated ? " skipped" : "");
    }
}

TEST_P(StepOn, TrainingLowersTheLossInEveryPrecision) {
  for (const PrecisionChoice& precision : kPrecisions) {
    Config c = with(precision, {});
    c.optim.lr = 3e-3;
    RealRun run(c, GetParam());
    RandomRows same(c);
    const double first = run.step(1, same).loss;
    double last = 0;
    for (int64_t step = 2; step <= 30; ++step) last = run.step(step, same).loss;
    EXPECT_LT(last, 0.7 * first) << precision.words();
  }
}

}  // namespace
}  // namespace hlat
