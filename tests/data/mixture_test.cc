// Mixtures: realized token shares follow the weights in every lane and every segment, and lanes do not start alike.
#include "data/mixture.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "support/memory_source.h"

namespace hlat {
namespace {

// Two sources with short documents and one with long ones.
struct Sources {
  MemorySource web{"web", {.documents = 500, .longest = 50, .piece = 1000}};
  MemorySource code{"code", {.documents = 300, .first_token = 1'000'000, .longest = 30, .piece = 1000}};
  MemorySource books{"books", {.documents = 40, .first_token = 2'000'000, .longest = 400, .piece = 100}};
  Mixture mix(std::vector<Segment> segments) const {
    for (Segment& g : segments) g.weights = shares(g.weights);
    return {.sources = {&web, &code, &books}, .names = {"web", "code", "books"}, .segments = std::move(segments), .seed = 11};
  }
};

size_t source_of(int32_t token) { return static_cast<size_t>(token) / 1'000'000; }

TEST(Mixture, EveryLaneKeepsWithinADocumentOfTheWeights) {
  const Sources sources;
  const Mixture mixture = sources.mix({{1, {6, 3, 1}}});
  constexpr int64_t kLanes = 8, kT = 64;
  Lanes lanes(mixture, kLanes, kT);
  RowReader reader(lanes);
  const std::vector<double> longest = {50, 30, 400};
  const std::vector<double> typical = {26, 16, 201};
  const double phases = typical[0] + typical[1] + typical[2];
  for (int64_t l = 0; l < kLanes; ++l) {
    for (int row = 1; row <= 400; ++row) {
      reader.next(l);
      const LaneState& s = lanes.state(l);
      // The source whose turn it is has at most its share of all tokens and phases, less its own phase; then a document comes on top.
      for (size_t i = 0; i < 3; ++i) {
        const double ahead = static_cast<double>(s.counts[i].tokens) - mixture.segments[0].weights[i] * row * kT;
        ASSERT_LE(ahead, mixture.segments[0].weights[i] * phases + 0.5 * typical[i] + longest[i])
            << "lane " << l << " row " << row << " source " << i;
      }
    }
  }
}

TEST(Mixture, SegmentsStartAtTheirStepAndAreCountedExactly) {
  const Sources sources;
  const Mixture mixture = sources.mix({{1, {1, 0, 0}}, {101, {0, 1, 1}}, {201, {1, 2, 1}}});
  constexpr int64_t kLanes = 4, kT = 100;
  Lanes lanes(mixture, kLanes, kT);
  RowReader reader(lanes);
  for (int64_t l = 0; l < kLanes; ++l) {
    std::vector<std::vector<uint64_t>> seen(3, std::vector<uint64_t>(3));
    for (int64_t step = 1; step <= 300; ++step) {
      const std::vector<int32_t> row = reader.next(l);
      for (size_t i = 0; i < kT; ++i) ++seen[static_cast<size_t>(step - 1) / 100][source_of(row[i])];
    }
    const LaneState& s = lanes.state(l);
    for (size_t g = 0; g < 3; ++g) {
      uint64_t all = 0;
      for (size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(s.counts[g * 3 + i].tokens, seen[g][i]) << "segment " << g << " source " << i;
        all += seen[g][i];
        EXPECT_NEAR(static_cast<double>(seen[g][i]), mixture.segments[g].weights[i] * 100 * kT, 480) << "segment " << g << " source " << i;
      }
      EXPECT_EQ(all, 100u * kT);
    }
    EXPECT_EQ(seen[0][1] + seen[0][2], 0u);
    EXPECT_LE(seen[1][0], 50u) << "only what was left of the document under way";
  }
}

TEST(Mixture, LanesAreSpreadOverTheMixtureFromTheFirstRow) {
  const Sources sources;
  const Mixture mixture = sources.mix({{1, {2, 1, 1}}});
  constexpr int64_t kLanes = 400, kT = 64;
  Lanes lanes(mixture, kLanes, kT);
  RowReader reader(lanes);
  std::vector<double> share(3);
  std::vector<int> starts(3);
  constexpr int kRows = 16;
  for (int64_t l = 0; l < kLanes; ++l)
    for (int r = 0; r < kRows; ++r) {
      const std::vector<int32_t> row = reader.next(l);
      if (r == 0) ++starts[source_of(row[0])];
      for (const int32_t t : row) share[source_of(t)] += 1.0 / (kLanes * kRows * (kT + 1));
    }
  // If all lanes started alike, one source would have all starts.
  EXPECT_GT(starts[0], 40);
  EXPECT_GT(starts[1], 40);
  EXPECT_GT(starts[2], 4) << "its documents are long, so few lanes begin with one";
  EXPECT_NEAR(share[0], 0.50, 0.05);
  EXPECT_NEAR(share[1], 0.25, 0.05);
  EXPECT_NEAR(share[2], 0.25, 0.05);
}

TEST(Mixture, ASourceWithoutWeightIsNeverRead) {
  const Sources sources;
  const Mixture mixture = sources.mix({{1, {1, 0, 2}}});
  Lanes lanes(mixture, 2, 50);
  RowReader reader(lanes);
  for (int row = 0; row < 100; ++row) reader.next(row % 2);
  EXPECT_EQ(sources.code.reads(), 0u);
}

TEST(Mixture, ValidationTakesItsShareByContent) {
  int taken = 0;
  for (uint64_t i = 0; i < 100000; ++i) taken += is_validation(hash_name(std::to_string(i)), 0.01) ? 1 : 0;
  EXPECT_NEAR(taken, 1000, 130);  // four standard deviations
  EXPECT_FALSE(is_validation(5, 0));
  EXPECT_TRUE(is_validation(5, 1));
  // A larger share holds out more, never others instead.
  for (uint64_t i = 0; i < 1000; ++i) EXPECT_LE(is_validation(i, 0.05), is_validation(i, 0.1));
}

TEST(Mixture, SegmentAtFindsTheLastThatBegan) {
  const Sources sources;
  const Mixture m = sources.mix({{1, {1, 1, 1}}, {5, {1, 0, 0}}, {6, {0, 1, 0}}});
  EXPECT_EQ(m.segment_at(1), 0u);
  EXPECT_EQ(m.segment_at(4), 0u);
  EXPECT_EQ(m.segment_at(5), 1u);
  EXPECT_EQ(m.segment_at(1000), 2u);
  EXPECT_THROW(m.segment_at(0), CheckFailed);
  EXPECT_THROW(shares({0, 0}), CheckFailed);
}

}  // namespace
}  // namespace hlat
