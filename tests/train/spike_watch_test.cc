// What counts as a spike, by both rules.
#include "train/spike_watch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/rng.h"

namespace hlat {
namespace {

LossConfig loss_rule(const std::string& name) {
  LossConfig c;
  c.rule = name;
  return c;
}

// Noise around a level.
class Noisy {
 public:
  double next(double level, double noise) {
    double sum = 0;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(stream_.below(1'000'000)) * 1e-6;
    return level + noise * (sum - 6);
  }

 private:
  RandomStream stream_{{.seed = 3, .stream = hash_name("noise"), .purpose = Noise::data, .step = 1}};
};

TEST(SpikeWatch, ALossFarAboveItsMedianIsOne) {
  SpikeHistory history;
  SpikeWatch watch(loss_rule("robust"), history);
  Noisy noise;
  for (int i = 0; i < 100; ++i) watch.add(noise.next(3, 0.05), 0.2);
  EXPECT_EQ(history.losses.size(), 64u);
  EXPECT_FALSE(watch.judge(3.2, 0.2).spike) << "4 standard deviations";
  const SpikeFinding found = watch.judge(4, 0.2);
  EXPECT_TRUE(found.spike);
  EXPECT_NEAR(found.median, 3, 0.03);
  EXPECT_NEAR(found.spread, 0.05, 0.02);
  EXPECT_FALSE(watch.judge(1, 0.2).spike) << "a fall is none";
  EXPECT_FALSE(watch.judge(3, 1000).spike) << "this rule looks at the loss alone";
}

TEST(SpikeWatch, NoiseAndAFallingLossDoNotAlarm) {
  SpikeHistory history;
  SpikeWatch watch(loss_rule("robust"), history);
  Noisy noise;
  for (int i = 1; i <= 10000; ++i) {
    const double loss = noise.next(2 + 8 / std::sqrt(i), 0.05);
    EXPECT_FALSE(watch.judge(loss, 1).spike) << "step " << i;
    watch.add(loss, 1);
  }
}

TEST(SpikeWatch, AConstantLossDoesNotAlarm) {
  for (const double level : {0.0, 1e-6, 2.5, 11.0}) {
    SpikeHistory history;
    SpikeWatch watch(loss_rule("robust"), history);
    for (int i = 0; i < 64; ++i) watch.add(level, 1);
    EXPECT_FALSE(watch.judge(level, 1).spike) << level;
    EXPECT_FALSE(watch.judge(level * 1.01, 1).spike) << level;
    EXPECT_TRUE(watch.judge(level * 1.1 + 0.01, 1).spike) << level;
  }
}

TEST(SpikeWatch, TheFirstStepsAreNotJudged) {
  SpikeHistory history;
  SpikeWatch watch(loss_rule("robust"), history);
  for (int i = 0; i < 15; ++i) {
    EXPECT_FALSE(watch.judge(100, 100).spike);
    watch.add(3, 0.1);
  }
  watch.add(3, 0.1);
  EXPECT_TRUE(watch.judge(100, 100).spike);
}

TEST(SpikeWatch, ALevelThatStaysIsSoonNone) {
  SpikeHistory history;
  SpikeWatch watch(loss_rule("robust"), history);
  for (int i = 0; i < 64; ++i) watch.add(3, 0.1);
  int alarms = 0;
  for (int i = 0; i < 100; ++i) {
    alarms += watch.judge(5, 0.1).spike ? 1 : 0;
    watch.add(5, 0.1);
  }
  EXPECT_GT(alarms, 1);
  EXPECT_LE(alarms, 33) << "half of the window";
}

TEST(SpikeWatch, TheRuleOfHlatLooksAtTheGradientNorm) {
  SpikeHistory history;
  SpikeWatch watch(loss_rule("hlat"), history);
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(watch.judge(3, 50).spike) << "fewer than 20 norms";
    watch.add(3, i % 2 == 0 ? 0.1 : 0.3);
  }
  EXPECT_NEAR(watch.judge(3, 0).norm_mean, 0.2, 1e-12);
  EXPECT_FALSE(watch.judge(300, 0.29).spike);
  EXPECT_TRUE(watch.judge(3, 0.31).spike);
}

TEST(SpikeWatch, WithoutARuleNothingIsOne) {
  SpikeHistory history;
  SpikeWatch watch(loss_rule("none"), history);
  for (int i = 0; i < 64; ++i) watch.add(3, 0.1);
  EXPECT_FALSE(watch.judge(1e9, 1e9).spike);
}

TEST(SpikeWatch, ValuesThatAreNotFiniteDoNotEnter) {
  SpikeHistory history;
  SpikeWatch watch(loss_rule("robust"), history);
  watch.add(std::numeric_limits<double>::quiet_NaN(), 1);
  watch.add(1, std::numeric_limits<double>::infinity());
  EXPECT_EQ(history, SpikeHistory());
}

TEST(SpikeWatch, ANarrowerWindowTakesTheLatestSteps) {
  SpikeHistory history;
  SpikeWatch wide(loss_rule("robust"), history);
  for (int i = 0; i < 64; ++i) wide.add(i, 1);
  LossConfig narrow = loss_rule("robust");
  narrow.window = 8;
  SpikeWatch watch(narrow, history);
  EXPECT_EQ(history.losses, (std::vector<double>{56, 57, 58, 59, 60, 61, 62, 63}));
}

}  // namespace
}  // namespace hlat
