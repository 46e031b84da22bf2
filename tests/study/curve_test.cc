// What is told of a curve, on curves that are made by hand: known slopes, known noise, planted divergence, and spikes that are none.
#include "study/curve.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "support/temp_dir.h"

namespace hlat::test {
namespace {

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

// A loss that falls as those of real runs do, with noise.
std::vector<double> falling(size_t steps, double noise, uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, noise);
  std::vector<double> out;
  for (size_t i = 0; i < steps; ++i)
    out.push_back(3 + 7 * std::exp(-static_cast<double>(i) / (0.1 * static_cast<double>(steps))) + (noise > 0 ? normal(random) : 0));
  return out;
}

std::optional<size_t> diverged(const std::vector<double>& losses) { return divergence(losses, std::vector<double>(losses.size(), 1.0)); }

TEST(Curve, FinalValues) {
  std::vector<double> values(10'000, 5.0);
  for (size_t i = 9'900; i < values.size(); ++i) values[i] = 2;
  EXPECT_EQ(final_value(values), 2) << "5 % would be 500, the most is 100";
  values.assign(1000, 5.0);
  for (size_t i = 950; i < 1000; ++i) values[i] = 1;
  EXPECT_EQ(final_value(values), 1);
  values.assign(200, 4.0);
  for (size_t i = 180; i < 200; ++i) values[i] = 2;
  EXPECT_EQ(final_value(values), 2) << "at least 20";
}

TEST(Curve, FinalValuesOfShortRunsLeaveTheirBeginningOut) {
  EXPECT_EQ(final_count(60), 12u);
  EXPECT_EQ(final_count(12), 2u);
  EXPECT_EQ(final_count(3), 1u);
  EXPECT_EQ(final_value(std::vector<double>{9, 8, 7, 6, 5, 4, 3, 3, 3, 3, 2, 1}), 1.5);
  EXPECT_EQ(final_value(std::vector<double>{3, 2, 1}), 1);
}

TEST(Curve, ALineHasNoNoiseWhateverItsSlope) {
  std::vector<double> line;
  for (int i = 0; i < 500; ++i) line.push_back(9 - 0.01 * i);
  EXPECT_NEAR(noise_around_curve(line), 0, 1e-12);
  EXPECT_NEAR(noise_around_curve(falling(1000, 0)), 0, 2e-4) << "nor does a smooth curve, but for its bend";
}

TEST(Curve, NoiseIsThatWhichWasAdded) {
  for (const double noise : {0.01, 0.1}) EXPECT_NEAR(noise_around_curve(falling(4000, noise)) / noise, 1, 0.05);
  EXPECT_NEAR(noise_around_curve(falling(60, 0.05)) / 0.05, 1, 0.5) << "short runs have a smaller window";
  EXPECT_TRUE(std::isnan(noise_around_curve(falling(19, 0.1))));
  // Of the first half nothing is told.
  std::vector<double> rough = falling(1000, 0);
  for (size_t i = 0; i < 450; i += 2) rough[i] += 1;
  EXPECT_LT(noise_around_curve(rough), 1e-3);
}

TEST(Curve, AlternatingNoiseIsKnownExactly) {
  std::vector<double> values;
  for (int i = 0; i < 1000; ++i) values.push_back(i % 2 == 0 ? 1.25 : 0.75);
  // Of the window of 51, 25 are of the value's own kind and 26 of the other: the line passes on the other side of the middle.
  EXPECT_NEAR(noise_around_curve(values), (0.25 + 0.25 / 51) / std::sqrt(1 - 1.0 / 51), 1e-9);
}

TEST(Curve, GrowthIsTheSlopeOfTheLogarithm) {
  std::vector<double> norms;
  for (int i = 0; i < 2000; ++i) norms.push_back(0.5 * std::exp(0.002 * i));
  const Growth g = growth_of(norms);
  EXPECT_NEAR(g.slope, 2, 1e-9);
  EXPECT_NEAR(g.ratio, std::exp(0.002 * 900), 1e-2 * std::exp(1.8));
  for (size_t i = 1000; i < norms.size(); i += 37) norms[i] *= 100;
  EXPECT_NEAR(growth_of(norms).slope, 2, 0.05) << "spikes do not tilt it";
  const Growth flat = growth_of(std::vector<double>(300, 0.7));
  EXPECT_EQ(flat.slope, 0);
  EXPECT_EQ(flat.ratio, 1);
  const Growth few = growth_of(std::vector<double>(299, 0.7));
  EXPECT_TRUE(std::isnan(few.slope)) << "150 steps do not tell what 1000 would do";
  EXPECT_EQ(few.ratio, 1);
  EXPECT_TRUE(std::isnan(growth_of(std::vector<double>(5, 1.0)).ratio));
}

TEST(Divergence, AHealthyRunHasNone) {
  EXPECT_FALSE(diverged(falling(2000, 0.1)));
  EXPECT_FALSE(diverged(std::vector<double>(500, 10.4))) << "one that learns nothing";
  EXPECT_FALSE(diverged({}));
  EXPECT_FALSE(diverged({1, 2}));
}

TEST(Divergence, SpikesAndShortBumpsAreNone) {
  std::vector<double> losses = falling(2000, 0.05);
  for (size_t i = 1000; i < 1016; ++i) losses[i] += 5;
  losses[1500] += 100;
  EXPECT_FALSE(diverged(losses));
  for (size_t i = 600; i < 680; ++i) losses[i] += 2;  // 80 steps, less than 5 % of the run
  EXPECT_FALSE(diverged(losses));
}

TEST(Divergence, ARiseThatStaysIsFoundWhereItBegins) {
  std::vector<double> losses = falling(2000, 0.05);
  for (size_t i = 1200; i < losses.size(); ++i) losses[i] += 1.5;
  const auto place = diverged(losses);
  ASSERT_TRUE(place);
  EXPECT_NEAR(static_cast<double>(*place), 1200, 2);
  // A slow one, when it is 0.5 above the least.
  losses = falling(2000, 0.02);
  for (size_t i = 1000; i < losses.size(); ++i) losses[i] += 0.01 * static_cast<double>(i - 1000);
  ASSERT_TRUE(diverged(losses));
  EXPECT_NEAR(static_cast<double>(*diverged(losses)), 1050, 15);
}

TEST(Divergence, AValueThatIsNotFiniteIsOne) {
  std::vector<double> losses = falling(300, 0.05);
  losses[211] = kNotANumber;
  EXPECT_EQ(diverged(losses), 211u);
  std::vector<double> norms(losses.size(), 1.0);
  norms[100] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(divergence(falling(300, 0.05), norms), 100u);
  // What rises into it begins before.
  losses = falling(300, 0.02);
  for (size_t i = 180; i < 211; ++i) losses[i] += 3;
  losses[211] = kNotANumber;
  EXPECT_NEAR(static_cast<double>(*diverged(losses)), 180, 2);
}

TEST(Curve, IsReadFromMetrics) {
  const TempDir dir;
  const std::string file = dir.write(
      "metrics.jsonl",
      "{\"step\":1,\"tokens\":10,\"loss\":5.0,\"grad_norm\":1.0,\"tokens_per_s\":7,\"step_s\":2,\"monitors\":{\"unchanged\":[0.2,0.4]}}\n"
      "{\"note\":\"no step\"}\nno json\n"
      "{\"step\":2,\"tokens\":20,\"loss\":null,\"grad_norm\":null,\"not_finite\":{\"loss\":\"nan\"}}\n"
      "{\"step\":3,\"tokens\":30,\"loss\":null,\"skipped\":1}\n"
      "{\"step\":4,\"tokens\":40,\"loss\":3.0,\"grad_norm\":2.0,\"val_loss\":3.5,\"monitors\":{\"drift\":0.25}}\n"
      "{\"step\":5,\"tokens\":50,\"loss\":2.");
  const RunCurve c = read_curve(file);
  EXPECT_EQ(c.step, (std::vector<int64_t>{1, 2, 4})) << "a step that was not computed has no loss, half a line is none";
  EXPECT_EQ(c.tokens.back(), 40);
  EXPECT_TRUE(std::isnan(c.loss[1]));
  EXPECT_EQ(c.grad_norm[2], 2);
  EXPECT_EQ(c.drift, std::vector<double>{0.25});
  ASSERT_EQ(c.unchanged.size(), 1u);
  EXPECT_NEAR(c.unchanged[0], 0.3, 1e-12);
  EXPECT_EQ(c.val_loss, 3.5);
  EXPECT_TRUE(read_curve(dir.path("none")).step.empty());
}

// Their batches changed no weights, and their norm may be no number.
TEST(Curve, StepsThatWereSkippedAreLeftOut) {
  const TempDir dir;
  std::string text;
  for (int step = 1; step <= 200; ++step) {
    const bool off = step == 120 || step == 121, unseen = step == 130;
    text += "{\"step\":" + std::to_string(step) + ",\"tokens\":" + std::to_string(10 * step) + ",\"loss\":" +
            (unseen || step == 120 ? "null"
             : step == 121         ? "900.0"
                                   : "3.0") +
            (unseen        ? ""
             : step == 120 ? ",\"grad_norm\":null"
                           : ",\"grad_norm\":1.0") +
            (off || unseen ? ",\"skipped\":1}\n" : "}\n");
  }
  const RunCurve c = read_curve(dir.write("metrics.jsonl", text));
  ASSERT_EQ(c.step.size(), 197u);
  ASSERT_EQ(c.tokens.size(), 197u);
  EXPECT_EQ(c.step[119], 122);
  EXPECT_EQ(c.step.back(), 200) << "the last ones too";
  EXPECT_EQ(c.tokens.back(), 2000);
  EXPECT_FALSE(divergence(c.loss, c.grad_norm));
  EXPECT_NEAR(noise_around_curve(c.loss), 0, 1e-12);
  EXPECT_NEAR(growth_of(c.grad_norm).ratio, 1, 1e-12);
}

TEST(Curve, TheLastWritingOfAStepCounts) {
  const TempDir dir;
  std::string text;
  for (const auto& [step, loss] : {std::pair(1, 9), {2, 8}, {3, 7}, {2, 5}})
    text += "{\"step\":" + std::to_string(step) + ",\"tokens\":" + std::to_string(10 * step) + ",\"loss\":" + std::to_string(loss) +
            ",\"grad_norm\":1}\n";
  const RunCurve c = read_curve(dir.write("metrics.jsonl", text));
  EXPECT_EQ(c.step, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(c.tokens, (std::vector<int64_t>{10, 20}));
  EXPECT_EQ(c.loss, (std::vector<double>{9, 5}));
}

}  // namespace
}  // namespace hlat::test
