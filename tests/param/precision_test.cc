// The rows of precision policies: presets as they were when they were fixed, single choices in their places, and which are refused.
#include "param/precision.h"

#include <gtest/gtest.h>

#include "config/precision_row.h"
#include "config/validate.h"
#include "support/precision_rows.h"

namespace hlat {
namespace {

TEST(PrecisionRow, PresetsHaveFusedKernelsThroughout) {
  for (const PrecisionChoice& row : preset_rows()) {
    const Precision p = precision_of(row.preset);
    EXPECT_EQ(p.dp_sum, p.grad) << row.words();
    EXPECT_EQ(p.tp_sum, p.compute) << row.words();
    EXPECT_TRUE(p.softmax == DType::f32 && p.norm == DType::f32 && p.loss == DType::f32) << row.words();
    EXPECT_FALSE(p.noisy_passes() || p.rounds_gradients() || p.wide_tp_sums()) << row.words();
  }
  const Precision sr = precision_of(PrecisionKind::mixed_sr);
  EXPECT_TRUE(sr.master && sr.weights == Rounding::stochastic && sr.moments == Rounding::stochastic && sr.moment == DType::f32);
}

TEST(PrecisionRow, SingleChoicesTakeThePlaceOfThePresets) {
  Config c;
  hlat_7b_row().apply(c);
  const Precision p = precision_of(c);
  EXPECT_TRUE(p.softmax == DType::bf16 && p.norm == DType::bf16 && p.loss == DType::bf16);
  EXPECT_TRUE(p.rounds_activations() && p.rounds_gradients() && p.noisy_passes());
  EXPECT_EQ(p.weights, Rounding::stochastic);  // the preset's
  EXPECT_EQ(precision_words(c), "bf16_sr with softmax=bf16, norms=bf16, loss=bf16, round_activations=stochastic, round_sums=stochastic");
}

TEST(PrecisionRow, OnlyUnkeyedNoiseDependsOnTheRank) {
  Precision p;
  EXPECT_EQ(noise_stream(p, "a", 0), noise_stream(p, "a", 1));
  EXPECT_EQ(noise_stream(p, "a", 3), hash_name("a"));
  p.keyed_noise = false;
  EXPECT_NE(noise_stream(p, "a", 0), noise_stream(p, "a", 1));
}

std::vector<std::string> refused(PrecisionKind preset, const PrecisionConfig& choices) {
  Config c;
  PrecisionChoice{preset, choices}.apply(c);
  std::vector<std::string> keys;
  for (const Violation& v : validate(c)) keys.push_back(v.keys.front());
  return keys;
}

TEST(PrecisionRow, RowsThatMeanNothingAreRefusedByKey) {
  using P = PrecisionConfig;
  using Keys = std::vector<std::string>;
  using enum PrecisionKind;
  EXPECT_EQ(refused(fp32, choices({{&P::activations, "bf16"}})), Keys{"precision.weights"});
  EXPECT_EQ(refused(fp32, choices({{&P::masters, "f32"}})), Keys{"precision.masters"});
  EXPECT_EQ(refused(fp32, choices({{&P::softmax, "bf16"}})), Keys{"precision.softmax"});
  EXPECT_EQ(refused(fp32, choices({{&P::grads, "bf16"}})), Keys{"precision.grads"});
  EXPECT_EQ(refused(mixed, choices({{&P::round_moments, "stochastic"}})), Keys{"precision.round_moments"});
  EXPECT_EQ(refused(mixed, choices({{&P::round_sums, "stochastic"}})), Keys{"precision.round_sums"});
  PrecisionConfig unkeyed;
  unkeyed.keyed_noise = false;
  EXPECT_EQ(refused(mixed, unkeyed), Keys{"precision.keyed_noise"});
  EXPECT_EQ(refused(bf16_sr, unkeyed), Keys{});
  for (const PrecisionChoice& row : plain_rows()) EXPECT_EQ(refused(row.preset, row.choices), Keys{}) << row.words();
}

}  // namespace
}  // namespace hlat
