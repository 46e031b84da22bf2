// Few-shot choice as Python's random.Random(1234).sample draws.
#include "task/python_random.h"

#include <gtest/gtest.h>

namespace hlat {
namespace {

using Draws = std::vector<std::vector<uint32_t>>;

Draws draws(uint64_t seed, uint32_t population, uint32_t count, size_t questions) {
  PythonRandom random(seed);
  Draws out;
  for (size_t i = 0; i < questions; ++i) out.push_back(random.sample(population, count));
  return out;
}

// python3 -c 'import random; r = random.Random(1234); print([r.sample(range(N), K) for _ in range(Q)])'
TEST(PythonRandom, DrawsWhatPythonDraws) {
  EXPECT_EQ(draws(1234, 7473, 8, 3), (Draws{{6374, 3610, 957, 61, 742, 7462, 6610, 4769},
                                            {286, 5501, 5677, 687, 806, 6279, 2905, 1939},
                                            {142, 252, 6461, 129, 2835, 5311, 5105, 3966}}));
  EXPECT_EQ(draws(1234, 1800, 5, 2), (Draws{{1593, 902, 239, 15, 185}, {1652, 1192, 71, 1375, 1419}}));
}

// Python draws from a list of what is left up to a size that depends on the count, and above it again and again.
TEST(PythonRandom, DrawsFromSmallPopulationsWithoutRepeating) {
  EXPECT_EQ(draws(1234, 20, 5, 3), (Draws{{14, 3, 0, 2, 1}, {2, 3, 11, 7, 0}, {0, 19, 11, 15, 14}}));
  EXPECT_EQ(draws(1234, 21, 5, 1), (Draws{{14, 3, 0, 2, 1}}));
  EXPECT_EQ(draws(1234, 22, 5, 1), (Draws{{14, 3, 0, 2, 18}}));
  EXPECT_EQ(draws(1234, 85, 6, 2), (Draws{{56, 14, 0, 11, 74, 4}, {10, 12, 45, 30, 2, 3}}));
  EXPECT_EQ(draws(1234, 86, 6, 2), (Draws{{56, 14, 0, 11, 74, 4}, {85, 10, 12, 45, 30, 2}}));
  EXPECT_EQ(draws(1234, 3, 3, 2), (Draws{{1, 0, 2}, {0, 2, 1}}));
}

// python3 -c 'import random; print(random.Random(2**40 + 7).sample(range(100), 4))'
TEST(PythonRandom, SeedsOfMoreThanOneWord) { EXPECT_EQ(draws((uint64_t{1} << 40) + 7, 100, 4, 1), (Draws{{78, 95, 81, 73}})); }

}  // namespace
}  // namespace hlat
