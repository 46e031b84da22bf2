// From values of examples to numbers with standard errors.
#include "task/metric.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hlat {
namespace {

std::vector<MetricValue> values(const std::vector<double>& list) {
  std::vector<MetricValue> out;
  for (const double v : list) out.push_back({.value = v});
  return out;
}

// python3 -c 'import statistics as s; x = [1, 0, 0, 1, 1]; print(s.mean(x), s.stdev(x) / len(x) ** .5)'
TEST(TaskMetric, MeanWithTheSampleStandardError) {
  const Estimate e = aggregate(Aggregation::mean, values({1, 0, 0, 1, 1}));
  EXPECT_DOUBLE_EQ(e.value, 0.6);
  EXPECT_NEAR(e.error, 0.24494897427831783, 1e-15);
  EXPECT_EQ(e.count, 5);
  EXPECT_TRUE(std::isnan(aggregate(Aggregation::mean, values({1})).error));
}

TEST(TaskMetric, PerplexityOfTargets) {
  const Estimate mean = aggregate(Aggregation::mean, values({-1, -2, -4}));
  const Estimate e = aggregate(Aggregation::perplexity, values({-1, -2, -4}));
  EXPECT_NEAR(e.value, std::exp(7.0 / 3), 1e-12);
  EXPECT_NEAR(e.error, e.value * mean.error, 1e-12);
}

TEST(TaskMetric, PerplexityPerWordAndBitsPerByte) {
  const std::vector<MetricValue> pages = {{.value = -30, .weight = 10}, {.value = -50, .weight = 30}};
  EXPECT_NEAR(aggregate(Aggregation::weighted_perplexity, pages).value, std::exp(80.0 / 40), 1e-12);
  EXPECT_NEAR(aggregate(Aggregation::bits_per_weight, pages).value, 80.0 / 40 / std::log(2), 1e-12);
  EXPECT_GT(aggregate(Aggregation::bits_per_weight, pages).error, 0);
}

// A group's variance is pooled: sum of (n - 1) s^2 over the degrees of freedom, then divided by all examples.
TEST(TaskMetric, GroupsAreWeightedBySize) {
  const Estimate a = aggregate(Aggregation::mean, values({1, 0})), b = aggregate(Aggregation::mean, values({1, 1, 1, 0, 0, 1}));
  const Estimate both = pooled(std::vector{a, b});
  EXPECT_EQ(both.count, 8);
  EXPECT_DOUBLE_EQ(both.value, 5.0 / 8);
  EXPECT_NEAR(both.error, std::sqrt((0.5 + 4.0 / 3) / 6 / 8), 1e-12);
  const Estimate alone = pooled(std::vector{b});
  EXPECT_NEAR(alone.error, b.error, 1e-15);
}

TEST(TaskMetric, PassAtK) {
  EXPECT_DOUBLE_EQ(pass_at_k(1, 1, 1), 1);
  EXPECT_DOUBLE_EQ(pass_at_k(20, 0, 10), 0);
  EXPECT_DOUBLE_EQ(pass_at_k(20, 11, 10), 1);
  EXPECT_NEAR(pass_at_k(20, 5, 1), 0.25, 1e-12);
  EXPECT_NEAR(pass_at_k(5, 2, 3), 1 - 1.0 / 10, 1e-12);            // C(3,3) / C(5,3)
  EXPECT_NEAR(pass_at_k(200, 3, 10), 0.14330744632252168, 1e-12);  // python3: 1 - math.comb(197, 10) / math.comb(200, 10)
}

}  // namespace
}  // namespace hlat
