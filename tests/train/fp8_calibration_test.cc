// Scales of FP8 where weights exist and scales do not, and where updates are left out: nothing saturates for longer than it takes to be
// met.
#include "train/fp8_calibration.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <mutex>

#include "base/bf16.h"
#include "checkpoint/checkpoint_folder.h"
#include "ops/download.h"
#include "support/layout_run.h"
#include "support/precision_rows.h"
#include "support/real_run.h"
#include "support/saved_run.h"
#include "support/temp_dir.h"
#include "train/fp8_record.h"

namespace hlat {
namespace {

constexpr float kFactor = 512;

void multiply(const Tensor& t, float factor) {
  for (int64_t e = 0; e < t.numel(); ++e)
    if (t.dtype == DType::f32)
      t.as<float>()[e] *= factor;
    else
      t.as<bf16>()[e] = to_bf16(to_float(t.as<bf16>()[e]) * factor);
}

float factor_of(const std::string& name) {
  if (name.ends_with(".norm1") || name.ends_with(".norm2")) return kFactor;
  return name.ends_with(".qkv") || name.ends_with(".gate_up") ? 1 / kFactor : 1;
}

// The same function with activations beyond the declared range: norms are multiplied, and what they feed is divided.
void enlarge(const ParamStore& params) {
  for (ParamId id = 0; id < params.size(); ++id)
    if (!params.fp8(id)) multiply(params.weight(id), factor_of(params.spec(id).name));
  for (const UpdateUnit& u : params.units())
    if (u.tensors.master.defined()) multiply(u.tensors.master, factor_of(params.spec(u.param).name));
}

// A second step of enlarged weights; weights do not move.
struct Enlarged {
  StepResult step;
  std::string record;
};

// The scales are measured anew, or they are those of weights that were not enlarged and the update is left out.
enum class Then { measured, skipped };

Enlarged run_enlarged(Layout layout, const PrecisionChoice& precision, Then then = Then::measured) {
  layout.precision = precision.preset;
  layout.choices = precision.choices;
  Config c = layout.config();
  take_fp8_shapes(c);
  c.optim.lr = 0;
  c.monitor.every = 1;
  std::mutex mutex;
  std::vector<std::string> parts;
  const LayoutResult result = run_layout(c, 2, [&](TrainStep& train, int64_t step) {
    Executor& executor = train.executor();
    if (step == 1) {
      enlarge(executor.params());
      if (then == Then::measured)
        executor.weights_loaded(Fp8Start::measured);
      else
        train.before_updates([](int64_t, double, double) { return false; });
      return;
    }
    const std::lock_guard lock(mutex);
    parts.push_back(own_fp8(executor));
  });
  return {result.steps[1], join_fp8(parts)};
}

TEST(Fp8Calibration, TheFirstStepOfWeightsThatExistDoesNotSaturate) {
  const StepResult mixed = run_enlarged(Layout{}, {PrecisionKind::mixed}).step;
  EXPECT_FALSE(mixed.calibrated);
  for (const PrecisionChoice& precision : fp8_rows()) {
    const StepResult r = run_enlarged(Layout{}, precision).step;
    ASSERT_TRUE(r.calibrated) << precision.words();
    EXPECT_LE(r.calibrated->passes, 4);
    EXPECT_TRUE(r.calibrated->finite);
    EXPECT_EQ(r.calibrated->saturated, 0);
    EXPECT_EQ(r.monitors->fp8_saturated, (std::vector<double>{0, 0, 0})) << precision.words();
    EXPECT_NEAR(r.loss, mixed.loss, 0.01 * mixed.loss) << precision.words();
    EXPECT_NEAR(r.grad_norm, mixed.grad_norm, 0.2 * mixed.grad_norm) << precision.words();
  }
}

// Rows are computed alike whatever replica or stage they are on, so the largest values are the same bits.
TEST(Fp8Calibration, IsTheSameOnEveryLayout) {
  for (const bool tied : {false, true}) {
    const Enlarged one = run_enlarged(Layout{.tied = tied}, {PrecisionKind::fp8});
    for (const Layout& layout : {Layout{.dp = 2, .tied = tied}, Layout{.pp = 2, .recompute = "full", .tied = tied},
                                 Layout{.pp = 2, .dp = 2, .zero1 = true, .chunks = 2, .tied = tied}}) {
      const Enlarged many = run_enlarged(layout, {PrecisionKind::fp8});
      EXPECT_EQ(many.record, one.record) << layout.name();
      EXPECT_EQ(many.step.calibrated->passes, one.step.calibrated->passes) << layout.name();
    }
  }
  for (const Layout& layout : {Layout{.tp = 2, .sp = true}, Layout{.tp = 4, .recompute = "full"}}) {  // of two kv heads
    const Enlarged split = run_enlarged(layout, {PrecisionKind::fp8});
    EXPECT_EQ(split.step.monitors->fp8_saturated, (std::vector<double>{0, 0, 0})) << layout.name();
  }
}

Config loaded_config(Layout layout, PrecisionKind precision) {
  layout.precision = precision;
  Config c = layout.config();
  take_fp8_shapes(c);
  c.model.init_std = 1;  // weights with which the declared scales saturate
  c.monitor.every = 1;
  return c;
}

TEST(Fp8Calibration, OfACheckpointWithoutScalesAndOfWeights) {
  const test::TempDir dir;
  const std::filesystem::path parent = dir.path("run");
  const TrainedPart saved = run_and_save(loaded_config({}, PrecisionKind::mixed), parent, 2, 0);
  const std::filesystem::path folder = checkpoint_path(parent, 2);
  for (const LoadWhat what : {LoadWhat::training, LoadWhat::weights}) {
    const LoadedPart mixed = load_and_run(loaded_config({}, PrecisionKind::mixed), folder, 1, what);
    const LoadedPart again = load_and_run(loaded_config({}, PrecisionKind::fp8), folder, 1, what);
    for (const Layout& layout : {Layout{}, Layout{.dp = 2}, Layout{.tp = 2, .pp = 2, .dp = 2, .zero1 = true}}) {
      const LoadedPart part = load_and_run(loaded_config(layout, PrecisionKind::fp8), folder, 1, what);
      const StepResult& r = part.steps[0];
      ASSERT_TRUE(r.calibrated) << layout.name();
      EXPECT_EQ(r.monitors->fp8_saturated, (std::vector<double>{0, 0, 0})) << layout.name();
      EXPECT_NEAR(r.loss, mixed.steps[0].loss, 0.05 * mixed.steps[0].loss) << layout.name();
      EXPECT_EQ(part.end.data.save(), mixed.end.data.save()) << layout.name() << ": rows are read once";
      if (mesh_shape(loaded_config(layout, PrecisionKind::fp8).parallel).ranks() == 1)
        expect_equal_state(part.end.tensors, again.end.tensors, "again");
    }
  }
}

TEST(Fp8Calibration, ScalesThatWereSavedAreTaken) {
  const test::TempDir dir;
  const std::filesystem::path parent = dir.path("run");
  run_and_save(loaded_config({}, PrecisionKind::fp8), parent, 2, 0);
  EXPECT_FALSE(load_and_run(loaded_config({}, PrecisionKind::fp8), checkpoint_path(parent, 2), 1).steps[0].calibrated);
}

// What the real step computes is what the last pass computed: monitors, loss sums and rows are those of one step.
TEST(Fp8Calibration, LeavesTheStepAsItIs) {
  Config c = loaded_config({}, PrecisionKind::fp8);
  RealRun run(c, cpu_device("auto", 1));
  run.executor().weights_loaded(Fp8Start::measured);
  class Counted : public RandomRows {
   public:
    using RandomRows::RandomRows;
    void read(int64_t first, Batch& b) override { ++reads, RandomRows::read(first, b); }
    int64_t reads = 0;
  };
  Counted rows(c);
  const StepResult r = run.step(1, rows);
  EXPECT_TRUE(r.calibrated);
  EXPECT_EQ(rows.reads, run.train().micros());
  run.check_used();
  RealRun other(c, cpu_device("auto", 1));
  other.executor().weights_loaded(Fp8Start::measured);
  other.train().before_updates([](int64_t, double, double) { return true; });
  EXPECT_EQ(other.step(1).loss, r.loss);
}

// A batch that is not finite teaches nothing: the next one is measured too.
TEST(Fp8Calibration, IsNotDoneOnABatchThatIsNotFinite) {
  RealRun run(loaded_config({}, PrecisionKind::fp8), cpu_device("auto", 1));
  const ParamStore& params = run.executor().params();
  run.executor().weights_loaded(Fp8Start::measured);
  bf16* norm = nullptr;
  for (ParamId id = 0; id < params.size(); ++id)
    if (params.spec(id).name == "layers.1.norm1") norm = params.weight(id).as<bf16>();
  const bf16 sound = *norm;
  *norm = to_bf16(std::numeric_limits<float>::quiet_NaN());
  run.train().before_updates([](int64_t, double loss, double) { return std::isfinite(loss); });
  const StepResult broken = run.step(1);
  EXPECT_TRUE(broken.skipped);
  EXPECT_TRUE(run.executor().fp8().uncalibrated());
  ASSERT_TRUE(broken.calibrated);
  EXPECT_FALSE(broken.calibrated->finite);
  EXPECT_NE(broken.calibrated->words().find("scales are not measured"), std::string::npos) << broken.calibrated->words();
  *norm = sound;
  const StepResult r = run.step(2);
  ASSERT_TRUE(r.calibrated);
  EXPECT_TRUE(r.calibrated->finite);
  EXPECT_NE(r.calibrated->words().find("scales measured on the first batch"), std::string::npos) << r.calibrated->words();
  EXPECT_EQ(r.monitors->fp8_saturated[0], 0);
  EXPECT_FALSE(run.executor().fp8().uncalibrated());
}

TEST(Fp8Skips, TellTheScalesTheSameOnEveryLayout) {
  const Enlarged one = run_enlarged(Layout{}, {PrecisionKind::fp8}, Then::skipped);
  ASSERT_TRUE(one.step.skipped);
  EXPECT_GT(one.step.monitors->fp8_saturated[0], 0.1);
  EXPECT_NE(one.record, run_enlarged(Layout{}, {PrecisionKind::fp8}).record);
  for (const Layout& layout : {Layout{.dp = 2}, Layout{.pp = 2, .recompute = "full"}, Layout{.pp = 2, .dp = 2, .zero1 = true, .chunks = 2}})
    EXPECT_EQ(run_enlarged(layout, {PrecisionKind::fp8}, Then::skipped).record, one.record) << layout.name();
  const Enlarged split = run_enlarged(Layout{.tp = 4}, {PrecisionKind::fp8}, Then::skipped);
  EXPECT_NEAR(split.step.monitors->fp8_saturated[0], one.step.monitors->fp8_saturated[0], 0.01);
}

// What a skipped step met is known to the next one. Weights and their scales stay.
TEST(Fp8Skips, ValuesBeyondTheRangeAreSkippedTwiceAtMost) {
  Config c = tiny_config();
  c.train.precision = PrecisionKind::fp8;
  fit_fp8(c);
  c.monitor.every = 1;
  RealRun run(c, cpu_device("auto", 1));
  for (int64_t step = 1; step <= 3; ++step) run.step(step);
  const ParamStore& params = run.executor().params();
  const Fp8State& s = params.fp8_state();
  enlarge(params);
  for (const ParamId id : s.params()) {
    const float factor = factor_of(params.spec(id).name);
    const int64_t unit = s.unit(id, Fp8Role::weight);
    const Tensor scale = s.scale(id, Fp8Role::weight);
    for (int64_t i = 0; i < kFp8Scale; ++i) scale.as<float>()[i] *= i < kFp8Inverse ? 1 / factor : factor;
    multiply(s.history.rows(unit, unit + 1).viewed({kFp8History}), factor);
  }
  const auto kept = [&] {
    std::vector<std::byte> all = run.weight_bytes();
    const auto add = [&](const Tensor& t) {
      const auto* bytes = static_cast<const std::byte*>(t.data);
      if (t.defined()) all.insert(all.end(), bytes, bytes + t.bytes());
    };
    for (const Bucket& b : params.buckets())
      for (const Tensor& t : {b.transposed, b.master, b.m, b.v}) add(t);
    add(s.scales.rows(s.units_in_passes(), s.units()));
    add(s.history.rows(s.units_in_passes(), s.units()));
    add(s.met_in_update());
    return all;
  };
  const auto before = kept();
  run.train().before_updates([](int64_t step, double, double) { return step > 5; });
  const StepResult first = run.step(4), second = run.step(5);
  EXPECT_TRUE(first.skipped && second.skipped);
  EXPECT_TRUE(kept() == before) << "weights, or their scales";
  EXPECT_GT(first.monitors->fp8_saturated[0], 0.1);
  EXPECT_EQ(first.monitors->fp8_saturated.size(), 2u) << "no weights were stored";
  EXPECT_TRUE(first.monitors->grad_norm.empty());
  EXPECT_LT(second.monitors->fp8_saturated[0], 1e-3) << "it saw what the first met";
  const StepResult third = run.step(6);
  EXPECT_EQ(third.monitors->fp8_saturated, (std::vector<double>{0, 0, 0}));
  EXPECT_NEAR(third.loss, run.step(7).loss, 0.2 * third.loss);
}

}  // namespace
}  // namespace hlat
