// Shares of the sources in what was read: means over stretches, steps that tell nothing, sources that come and go.
#include "report/source_shares.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hlat {
namespace {

TEST(SourceShares, OfEachStepInAShortRun) {
  RunCurves c;
  for (int64_t s = 1; s <= 4; ++s) c.step.push_back(s), c.curves["loss"].add(s, 3);
  c.curves["rows/web"] = {.step = {2, 3}, .value = {3, 2}};  // step 1 is of a version that does not tell it
  c.curves["rows/books"] = {.step = {2, 3, 4}, .value = {1, 2, 4}};
  const SourceShares s = source_shares(c, 100);
  EXPECT_EQ(s.step, (std::vector<int64_t>{2, 3, 4}));
  ASSERT_EQ(s.shares.size(), 2u);
  EXPECT_EQ(s.shares.at("web"), (std::vector<double>{0.75, 0.5, 0}));
  EXPECT_EQ(s.shares.at("books"), (std::vector<double>{0.25, 0.5, 1}));
}

TEST(SourceShares, OfStretchesCountTheirRows) {
  RunCurves c;
  for (int64_t s = 1; s <= 1000; ++s) c.curves["rows/a"].add(s, s % 2 == 0 ? 8 : 0), c.curves["rows/b"].add(s, s <= 500 ? 4 : 0);
  const SourceShares s = source_shares(c, 10);
  ASSERT_EQ(s.step.size(), 10u);
  EXPECT_EQ(s.step.front(), 100);
  EXPECT_EQ(s.step.back(), 1000);
  EXPECT_EQ(s.shares.at("a")[4], 0.5);
  EXPECT_EQ(s.shares.at("a")[5], 1);
  EXPECT_EQ(s.shares.at("b")[5], 0);
}

TEST(SourceShares, OfFilesThatTellNothingOrNonsense) {
  RunCurves c;
  c.curves["loss"].add(1, 3);
  EXPECT_TRUE(source_shares(c, 10).step.empty());
  c.curves["rows/a"] = {.step = {1, 2, 3}, .value = {NAN, 0, -5}};
  const SourceShares s = source_shares(c, 10);
  ASSERT_EQ(s.step.size(), 3u);
  for (const double v : s.shares.at("a")) EXPECT_TRUE(std::isnan(v));
}

}  // namespace
}  // namespace hlat
