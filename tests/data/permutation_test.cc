// The computed shuffle: a bijection for every size, another one for every key, and no order left in it.
#include "data/permutation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "base/error.h"

namespace hlat {
namespace {

NoiseKey key(uint64_t seed, uint32_t epoch = 0) { return {seed, hash_name("order of test"), Noise::data, epoch}; }

TEST(Permutation, IsABijectionForEverySize) {
  std::vector<uint64_t> sizes(300);
  std::iota(sizes.begin(), sizes.end(), 1);
  for (const uint64_t n : {1023, 1024, 1025, 4097, 65537, 100003}) sizes.push_back(n);
  for (const uint64_t n : sizes) {
    const Permutation p(key(n), n);
    std::vector<bool> seen(n, false);
    for (uint64_t i = 0; i < n; ++i) {
      const uint64_t image = p(i);
      ASSERT_LT(image, n);
      ASSERT_FALSE(seen[image]) << n;
      seen[image] = true;
    }
  }
}

TEST(Permutation, WorksFarBeyondWhatCanBeStored) {
  const uint64_t n = (uint64_t{1} << 61) + 12345;
  const Permutation p(key(1), n);
  std::set<uint64_t> images;
  for (uint64_t i = 0; i < 10000; ++i) images.insert(p(n - 1 - i * 1000003));
  EXPECT_EQ(images.size(), 10000u);
  EXPECT_LT(*images.rbegin(), n);
  EXPECT_GT(*images.rbegin(), n - n / 100) << "the whole range is used";
}

// Each (position, image) pair is equally likely over keys: chi-square with (n - 1)^2 degrees of freedom.
TEST(Permutation, EveryElementGoesEverywhereEquallyOften) {
  for (const uint64_t n : {3, 5, 13}) {
    constexpr int kKeys = 10000;
    std::vector<int> count(n * n);
    for (int k = 0; k < kKeys; ++k) {
      const Permutation p(key(7, static_cast<uint32_t>(k)), n);
      for (uint64_t i = 0; i < n; ++i) ++count[i * n + p(i)];
    }
    const double expected = static_cast<double>(kKeys) / static_cast<double>(n);
    double chi = 0;
    for (const int c : count) chi += (c - expected) * (c - expected) / expected;
    const double freedom = static_cast<double>((n - 1) * (n - 1));
    EXPECT_NEAR(chi, freedom, 6 * std::sqrt(2 * freedom)) << n;
  }
}

TEST(Permutation, NeighboursDoNotStayTogether) {
  constexpr uint64_t kN = 10000;
  const Permutation p(key(3), kN);
  int near = 0;
  for (uint64_t i = 1; i < kN; ++i) {
    const auto distance = static_cast<int64_t>(p(i)) - static_cast<int64_t>(p(i - 1));
    near += std::abs(distance) <= 50 ? 1 : 0;
  }
  EXPECT_NEAR(near, 100, 60) << "a random order has 1 % of neighbours within 50 places, standard deviation 10";
}

TEST(Permutation, RefusesWhatIsOutside) {
  EXPECT_THROW(Permutation(key(1), 0), CheckFailed);
  EXPECT_THROW(Permutation(key(1), 10)(10), CheckFailed);
}

}  // namespace
}  // namespace hlat
