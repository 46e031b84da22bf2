// Layers of pipeline stages: the even split, given cuts, and the messages for cuts that cannot be.
#include "parallel/partition.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace hlat {
namespace {

TEST(Partition, EvenSplitCoversAllLayersWithTheFirstOnesLarger) {
  for (int64_t layers = 1; layers <= 40; ++layers)
    for (int pp = 1; pp <= 8; ++pp)
      for (int chunks = 1; pp * chunks <= layers && chunks <= 4; ++chunks) {
        const std::vector<Part> parts = partition_layers(layers, pp, chunks, {});
        ASSERT_EQ(parts.size(), static_cast<size_t>(pp * chunks));
        int64_t next = 0, last = parts.front().count;
        for (const Part& p : parts) {
          EXPECT_EQ(p.begin, next);
          EXPECT_LE(p.count, last);
          next = p.end();
          last = p.count;
        }
        EXPECT_EQ(next, layers);
        EXPECT_LE(parts.front().count - parts.back().count, 1);
        EXPECT_GE(parts.back().count, 1);
      }
  EXPECT_EQ(partition_layers(7, 3, 1, {}), (std::vector<Part>{{0, 3}, {3, 2}, {5, 2}}));
}

TEST(Partition, FollowsCuts) {
  EXPECT_EQ(partition_layers(8, 3, 1, {3, 7}), (std::vector<Part>{{0, 3}, {3, 4}, {7, 1}}));
  EXPECT_EQ(partition_layers(8, 2, 2, {1, 2, 5}), (std::vector<Part>{{0, 1}, {1, 1}, {2, 3}, {5, 3}}));
  EXPECT_EQ(partition_layers(2, 2, 1, {1}), (std::vector<Part>{{0, 1}, {1, 1}}));
}

std::string message(int64_t layers, int pp, int chunks, const std::vector<int64_t>& cuts) {
  try {
    partition_layers(layers, pp, chunks, cuts);
  } catch (const UsageError& e) {
    return e.what();
  }
  return "no error";
}

TEST(Partition, SaysWhatIsWrongWithCuts) {
  const auto expect = [](const std::string& text, const std::string& words) { EXPECT_NE(text.find(words), std::string::npos) << text; };
  expect(message(8, 3, 1, {3}), "parallel.cuts = [3]: has 1 values, but parallel.pp * parallel.chunks - 1 = 2");
  expect(message(8, 1, 1, {3}), "parallel.cuts = [3]: has 1 values, but parallel.pp * parallel.chunks - 1 = 0");
  expect(message(8, 3, 1, {0, 4}), "parallel.cuts = [0, 4]: 0 is not between 0 and model.layers = 8");
  expect(message(8, 3, 1, {4, 8}), "parallel.cuts = [4, 8]: 8 is not between 0 and model.layers = 8");
  expect(message(8, 3, 1, {-1, 8}), "-1 is not between");
  expect(message(8, 3, 1, {4, 4}), "parallel.cuts = [4, 4]: 4 follows 4");
  expect(message(8, 3, 1, {5, 4}), "parallel.cuts = [5, 4]: 4 follows 5");
  expect(message(4, 3, 2, {}), "parallel.pp = 3, parallel.chunks = 2: 6 pieces of the model, but only model.layers = 4");
}

}  // namespace
}  // namespace hlat
