// What monitors tell of values that FP8 cannot hold covers every step since they told it last, measured or not: scales are delayed, so most
// of such values come in single steps.
#include "train/fp8_counts.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "base/fp8.h"
#include "config/linear_shapes.h"
#include "support/layout_run.h"

namespace hlat {
namespace {

constexpr int64_t kCountedSteps = 11;

bool is_burst(int64_t step) { return step == 3 || step == 7; }

// The scales of inputs and gradients times `factor`, for one step: what follows from its history sets them right again.
void multiply_scales(const Executor& executor, float factor) {
  const Fp8State& s = executor.params().fp8_state();
  std::vector<float> scales(static_cast<size_t>(s.units_in_passes() * kFp8Scale));
  const Tensor place = s.scales.rows(0, s.units_in_passes());
  executor.device().download(scales.data(), place);
  for (size_t i = 0; i < scales.size(); ++i) scales[i] *= i % kFp8Scale < kFp8Inverse ? factor : 1 / factor;
  executor.device().upload(place, scales.data());
}

// Values saturate in the first step of is_burst, and are lost in the second.
void plant_burst(const Executor& executor, int64_t next_step) {
  if (is_burst(next_step)) multiply_scales(executor, next_step == 3 ? 64.0f : 0x1p-12f);
}

Config counted_config(Layout l, int64_t every) {
  l.precision = PrecisionKind::fp8;
  Config c = l.config();
  c.monitor.every = every;
  return c;
}

// Values that a step stores, by operand.
std::array<double, kFp8Roles> stored_values(const Config& c) {
  std::array<double, kFp8Roles> values{};
  const auto tokens = static_cast<double>(c.train.global_batch * c.train.seq_len);
  for (const LinearShape& l : linear_shapes(c.model)) {
    if (!fp8_fits(l.outputs, l.inputs)) continue;
    const auto layers = static_cast<double>(c.model.layers), in = static_cast<double>(l.inputs), out = static_cast<double>(l.outputs);
    values[static_cast<size_t>(Fp8Role::input)] += layers * tokens * in;
    values[static_cast<size_t>(Fp8Role::gradient)] += layers * tokens * out;
    values[static_cast<size_t>(Fp8Role::weight)] += layers * in * out;
  }
  return values;
}

// Counts that steps have told, by operand.
struct Told {
  std::array<double, kFp8Roles> saturated{}, lost{};
  bool operator==(const Told&) const = default;
};

double whole_number(double share, double values) {
  EXPECT_NEAR(share * values, std::round(share * values), 1e-6) << share << " of " << values;
  return std::round(share * values);
}

// The first `steps` steps, which end with a measured one. Inputs and gradients are stored in each step, weights in those that are not
// skipped; an operand's share is of the steps since it was told last.
Told told_by(const Config& c, const std::vector<StepResult>& steps, int64_t count) {
  const std::array<double, kFp8Roles> values = stored_values(c);
  std::array<double, kFp8Roles> since{};
  Told told;
  for (int64_t step = 1; step <= count; ++step) {
    const StepResult& r = steps[static_cast<size_t>(step - 1)];
    for (size_t i = 0; i < since.size(); ++i) since[i] += r.skipped && i == static_cast<size_t>(Fp8Role::weight) ? 0 : 1;
    if (!r.monitors) continue;
    for (size_t i = 0; i < r.monitors->fp8_saturated.size(); ++i) {
      told.saturated[i] += whole_number(r.monitors->fp8_saturated[i], since[i] * values[i]);
      told.lost[i] += whole_number(r.monitors->fp8_lost[i], since[i] * values[i]);
      since[i] = 0;
    }
  }
  return told;
}

// Steps 4 and 5 are skipped, the second of which is one that is measured every five steps.
std::vector<StepResult> run_counted(const Config& c) {
  return run_layout(c, kCountedSteps,
                    [](TrainStep& train, int64_t step) {
                      if (step == 1) train.before_updates([](int64_t s, double, double) { return s != 4 && s != 5; });
                      plant_burst(train.executor(), step + 1);
                    })
      .steps;
}

TEST(Fp8Tally, AStepThatIsNotMeasuredIsToldByTheNextOneThatIs) {
  const Config c = counted_config({}, 5);
  const std::vector<StepResult> steps = run_counted(c);
  for (int64_t step = 1; step <= kCountedSteps; ++step)
    EXPECT_EQ(steps[static_cast<size_t>(step - 1)].monitors.has_value(), step % 5 == 0) << step;
  const Monitors &first = *steps[4].monitors, &second = *steps[9].monitors;
  ASSERT_EQ(first.fp8_saturated.size(), 2u) << "step 5 is skipped";
  EXPECT_GT(first.fp8_saturated[0], 0.01) << "inputs of step 3";
  EXPECT_GT(first.fp8_saturated[1], 0.01) << "gradients of step 3";
  EXPECT_EQ(second.fp8_saturated, (std::vector<double>{0, 0, 0})) << "what was told is not told again";
  EXPECT_GT(second.fp8_lost[0], 0.02) << "inputs of step 7";
}

TEST(Fp8Tally, MeasuredStepsTellTogetherWhatEveryStepTells) {
  for (const Layout& l :
       {Layout{}, Layout{.recompute = "full"}, Layout{.micro = 4}, Layout{.tp = 2}, Layout{.tp = 2, .sp = true}, Layout{.tp = 4, .kv = 1},
        Layout{.pp = 2, .chunks = 2}, Layout{.dp = 2, .micro = 2}, Layout{.tp = 2, .pp = 2, .dp = 2, .sp = true, .zero1 = true}}) {
    const Config each = counted_config(l, 1), fifth = counted_config(l, 5);
    const std::vector<StepResult> a = run_counted(each), b = run_counted(fifth);
    for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].loss, b[i].loss) << l.name() << " step " << i + 1;
    const Told all = told_by(each, a, 10), some = told_by(fifth, b, 10);
    EXPECT_EQ(some.saturated, all.saturated) << l.name();
    EXPECT_EQ(some.lost, all.lost) << l.name();
    EXPECT_GT(all.saturated[0], 1000) << l.name();
    EXPECT_GT(all.saturated[1], 1000) << l.name();
    // The first measured step was skipped: it tells no weights, and the second those of all updates.
    const Told early = told_by(each, a, 5), early_some = told_by(fifth, b, 5);
    EXPECT_EQ(early_some.saturated[0], early.saturated[0]) << l.name();
    EXPECT_EQ(early_some.lost[1], early.lost[1]) << l.name();
    EXPECT_EQ(early_some.lost[2], 0) << l.name();
  }
}

// Weights too: masters that are far below the largest one become 0, by every update anew.
TEST(Fp8Tally, WeightsOfEveryUpdateAreCounted) {
  const auto run = [](int64_t every) {
    Config c = counted_config({}, every);
    c.optim.lr = 0;
    return run_layout(c, 7,
                      [](TrainStep& train, int64_t step) {
                        if (step != 1) return;
                        for (const UpdateUnit& u : train.executor().params().units())
                          if (u.tensors.fp8_seen.defined()) train.executor().ops().fill(u.tensors.master.rows(0, 1), 1000);
                        train.executor().fp8().make(Fp8Start::declared);
                      })
        .steps;
  };
  const std::vector<StepResult> each = run(1), third = run(3);
  const Told all = told_by(counted_config({}, 1), each, 6), some = told_by(counted_config({}, 3), third, 6);
  EXPECT_EQ(some.lost, all.lost);
  EXPECT_GT(all.lost[2], 1000);
  EXPECT_EQ(told_by(counted_config({}, 3), third, 3).lost[2], told_by(counted_config({}, 1), each, 3).lost[2]);
}

}  // namespace
}  // namespace hlat
