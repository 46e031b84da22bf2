// What a row tells by itself: repetition and the baseline of a predictor that copies, on rows whose values are known.
#include "train/row_statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/rng.h"

namespace hlat {
namespace {

std::vector<int32_t> random_tokens(size_t count, uint64_t vocab, uint32_t seed) {
  RandomStream s({.seed = seed, .stream = hash_name("row"), .purpose = Noise::data, .step = 1});
  std::vector<int32_t> row(count);
  for (int32_t& t : row) t = static_cast<int32_t>(s.below(vocab));
  return row;
}

std::vector<int32_t> joined(std::vector<int32_t> a, const std::vector<int32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(RowStatistics, NothingRepeatsInRandomTokens) {
  const RowStatistics s = row_statistics(random_tokens(4097, 1000, 1), 1000);
  EXPECT_EQ(s.repetition, 0);
  // No context helps: the frequencies of few tokens are known from many, but each new one costs.
  EXPECT_GT(s.copy_baseline, std::log(1000.0));
  EXPECT_LT(s.copy_baseline, std::log(1000.0) + 0.5);
}

TEST(RowStatistics, TheSecondOfTwoCopiesIsRepeated) {
  const std::vector<int32_t> half = random_tokens(1000, 32000, 2), other = random_tokens(1000, 32000, 3);
  const RowStatistics copied = row_statistics(joined(half, half), 32000), plain = row_statistics(joined(half, other), 32000);
  EXPECT_EQ(copied.repetition, 0.5);
  EXPECT_EQ(plain.repetition, 0);
  EXPECT_LT(copied.copy_baseline, 0.55 * plain.copy_baseline);  // half of it is nearly free
  EXPECT_GT(copied.copy_baseline, 0.45 * plain.copy_baseline);
}

TEST(RowStatistics, AMatchHasSixteenTokensOrMore) {
  const std::vector<int32_t> row = random_tokens(500, 32000, 4);
  const auto ending_with = [&](int64_t copied) { return joined(row, {row.begin() + 100, row.begin() + 100 + copied}); };
  EXPECT_EQ(row_statistics(ending_with(15), 32000).repetition, 0);
  EXPECT_EQ(row_statistics(ending_with(16), 32000).repetition, 16.0 / 516);
  EXPECT_EQ(row_statistics(ending_with(40), 32000).repetition, 40.0 / 540);
}

TEST(RowStatistics, OneTokenForeverIsFree) {
  const RowStatistics s = row_statistics(std::vector<int32_t>(2048, 7), 32000);
  EXPECT_NEAR(s.repetition, 1, 0.01);
  EXPECT_LT(s.copy_baseline, 0.05);
}

// By hand: the second token is new after one (d = 2, t = 1), the third is one of two (d = 3, t = 2).
TEST(RowStatistics, CountsTokensAsItSays) {
  const double second = (0 + 2.0 / 10) / (1 + 2), third = (1 + 3.0 / 10) / (2 + 3);
  EXPECT_DOUBLE_EQ(row_statistics(std::vector<int32_t>{4, 5, 4}, 10).copy_baseline, -(std::log(second) + std::log(third)) / 2);
  EXPECT_EQ(row_statistics(std::vector<int32_t>{4}, 10).copy_baseline, 0);
  EXPECT_EQ(row_statistics(std::vector<int32_t>{}, 10).repetition, 0);
}

}  // namespace
}  // namespace hlat
