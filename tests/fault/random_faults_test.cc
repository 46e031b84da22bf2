// Faults at random: the same on all ranks and in every run of a seed, others in every attempt, and as often as they should be.
#include "fault/random_faults.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace hlat::fault {
namespace {

const std::vector<FaultKind> kThreeKinds = {FaultKind::kill, FaultKind::hang, FaultKind::lost};

std::vector<RandomFault> drawn(uint64_t seed, int attempt, int count, double every_s = 30, int ranks = 4) {
  RandomFaults faults(seed, attempt, every_s, kThreeKinds, ranks);
  std::vector<RandomFault> all;
  for (; count > 0; --count, faults.draw()) all.push_back(faults.next());
  return all;
}

TEST(RandomFaults, FollowFromSeedAndAttempt) {
  EXPECT_EQ(drawn(7, 1, 50), drawn(7, 1, 50));
  EXPECT_NE(drawn(7, 1, 5), drawn(7, 2, 5));
  EXPECT_NE(drawn(7, 1, 5), drawn(8, 1, 5));
}

TEST(RandomFaults, PausesAreExponential) {
  constexpr int kDraws = 20000;
  const auto all = drawn(1, 1, kDraws);
  double before = 0, squares = 0;
  int longer = 0;
  for (const RandomFault& f : all) {
    const double pause = f.at_s - before;
    EXPECT_GE(pause, 0);
    squares += pause * pause;
    if (pause > 60) ++longer;
    before = f.at_s;
  }
  // Mean 30 and standard deviation 30: the mean of so many is off by 0.2.
  EXPECT_NEAR(before / kDraws, 30, 1);
  EXPECT_NEAR(squares / kDraws, 2 * 30 * 30, 120);
  EXPECT_NEAR(longer / double{kDraws}, std::exp(-2), 0.01);
}

TEST(RandomFaults, KindsAndRanksAreUniform) {
  std::map<FaultKind, int> kinds;
  std::map<int, int> ranks;
  for (const RandomFault& f : drawn(3, 1, 12000)) ++kinds[f.kind], ++ranks[f.rank];
  ASSERT_EQ(kinds.size(), 3u);
  ASSERT_EQ(ranks.size(), 4u);
  for (const auto& [kind, count] : kinds) EXPECT_NEAR(count, 4000, 300);
  for (const auto& [rank, count] : ranks) EXPECT_NEAR(count, 3000, 300) << rank;
}

}  // namespace
}  // namespace hlat::fault
