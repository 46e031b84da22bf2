// Updates of sampled elements against AdamW's formula: right ones are never off, whatever the precision and schedule, and each way to get
// one wrong shows.
#include "train/update_sample.h"

#include <gtest/gtest.h>

#include <utility>

#include "support/real_run.h"

namespace hlat {
namespace {

// What is measured of steps 1 to `steps`, where the formula gets another config than the run.
std::vector<std::optional<double>> errors_of(const Config& c, int64_t steps, const OptimConfig& claimed, double claimed_lr = 1) {
  RealRun run(c, cpu_device("auto", 1));
  UpdateSample sample(run.executor().params(), run.device());
  std::vector<std::optional<double>> errors;
  for (int64_t step = 1; step <= steps; ++step) {
    sample.take();
    run.step(step);
    errors.push_back(sample.error(claimed, c.optim.lr * claimed_lr, step));
  }
  return errors;
}

TEST(UpdateSample, SoundUpdatesAreNotOffInAnyPrecision) {
  using enum PrecisionKind;
  for (const PrecisionKind precision : {fp32, mixed, mixed_sr})
    for (const auto& [lr, beta2] : {std::pair(1e-7, 0.95), std::pair(1e-2, 0.999)}) {
      Config c = tiny_config();
      c.train.precision = precision;
      c.optim.lr = lr, c.optim.beta2 = beta2;
      for (const auto& error : errors_of(c, 6, c.optim)) {
        ASSERT_TRUE(error) << name_of(precision);
        EXPECT_LT(*error, 2e-4) << name_of(precision) << " lr " << lr << " beta2 " << beta2;
      }
    }
}

TEST(UpdateSample, MomentsInBf16AreAllowedTheirRounding) {
  for (const char* rounding : {"nearest", "stochastic"}) {
    Config c = tiny_config();
    c.train.precision = PrecisionKind::mixed;
    c.precision.moments = "bf16", c.precision.round_moments = rounding;
    for (const auto& error : errors_of(c, 6, c.optim)) EXPECT_LT(*error, 2e-4) << rounding;
  }
}

TEST(UpdateSample, WeightsThatAreRoundedToBf16TellNothing) {
  for (const PrecisionKind precision : {PrecisionKind::bf16, PrecisionKind::bf16_sr}) {
    Config c = tiny_config();
    c.train.precision = precision;
    EXPECT_FALSE(errors_of(c, 1, c.optim)[0]) << name_of(precision);
  }
}

TEST(UpdateSample, AnotherRateDecayOrMomentShows) {
  const Config c = tiny_config();
  EXPECT_GT(*errors_of(c, 10, c.optim, 1.01)[9], 5e-3);
  OptimConfig other = c.optim;
  other.weight_decay += 1;
  EXPECT_GT(*errors_of(c, 10, other)[9], 5e-3);
  other = c.optim;
  other.beta2 = 0.99;
  EXPECT_GT(*errors_of(c, 10, other)[9], 5e-3);
  other = c.optim;
  other.eps = 1e-3;
  EXPECT_GT(*errors_of(c, 10, other)[9], 5e-3);
}

}  // namespace
}  // namespace hlat
