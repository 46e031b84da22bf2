// Mixtures: realized token shares follow the weights in every window, lane and segment, and lanes do not start alike.
#include "data/mixture.h"

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "base/error.h"
#include "data/ledger.h"
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

TEST(Mixture, EveryLaneFollowsTheWeights) {
  const Sources sources;
  const Mixture mixture = sources.mix({{1, {6, 3, 1}}});
  constexpr uint64_t kRows = 4000;
  for (const uint64_t lanes : {1, 2, 8, 13, 64, 89})
    for (uint64_t l = 0; l < lanes; ++l) {
      std::vector<double> rows(3);
      for (uint64_t r = 0; r < kRows; ++r) ++rows[mixture.source_of(r, l, lanes)];
      for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(rows[i] / kRows, mixture.segments[0].weights[i], 0.03) << "lane " << l << " of " << lanes;
    }
}

// Documents of 200, 5,000 and 100,000 tokens: no window of a million tokens is off by two points, from the start and after a change.
TEST(Mixture, SharesHoldInEveryWindowWhateverTheDocuments) {
  const MemorySource web("web", {.documents = 500, .piece = 100'000, .fixed = 200});
  const MemorySource code("code", {.documents = 60, .first_token = 1'000'000, .piece = 100'000, .fixed = 5000});
  const MemorySource books("books", {.documents = 3, .first_token = 2'000'000, .piece = 100'000, .fixed = 100'000});
  struct Shape {
    int64_t lanes, seq_len, steps;
  };
  for (const Shape& shape : {Shape{16, 256, 1500}, Shape{64, 4096, 24}}) {
    const Mixture mixture{.sources = {&web, &code, &books},
                          .names = {"web", "code", "books"},
                          .segments = {{1, {0.5, 0.3, 0.2}}, {shape.steps / 2 + 1, {0.1, 0.0, 0.9}}},
                          .seed = 3};
    Lanes lanes(mixture, shape.lanes, shape.seq_len);
    Readers readers(mixture);
    std::vector<int32_t> row(static_cast<size_t>(shape.seq_len) + 1);
    std::vector<std::vector<double>> tokens;  // by step and source
    for (int64_t step = 0; step < shape.steps; ++step) {
      tokens.emplace_back(3);
      for (int64_t l = 0; l < shape.lanes; ++l) {
        std::vector<RowPart> parts;
        lanes.read_row(l, readers, row.data(), &parts);
        for (const RowPart& p : parts) tokens.back()[p.source] += static_cast<double>(std::min(p.count, shape.seq_len - p.begin));
      }
    }
    const double per_step = static_cast<double>(shape.lanes * shape.seq_len);
    const auto window = static_cast<int64_t>(std::ceil(1e6 / per_step));
    for (const auto& [from, to, segment] : {std::tuple{int64_t{0}, shape.steps / 2, 0}, {shape.steps / 2, shape.steps, 1}})
      for (int64_t begin = from; begin + window <= to; ++begin)
        for (size_t s = 0; s < 3; ++s) {
          double sum = 0;
          for (int64_t i = begin; i < begin + window; ++i) sum += tokens[static_cast<size_t>(i)][s];
          EXPECT_NEAR(sum / (static_cast<double>(window) * per_step), mixture.segments[static_cast<size_t>(segment)].weights[s], 0.02)
              << shape.lanes << " lanes, from step " << begin + 1;
        }
  }
}

TEST(Mixture, TheLedgerCountsWhatAStageLeavesUnread) {
  const Sources sources;
  const Mixture mixture = sources.mix({{1, {1, 1, 1}}, {11, {1, 0, 0}}});
  Lanes lanes(mixture, 4, 50);
  RowReader reader(lanes);
  const auto ledger = [&] {
    std::vector<LaneState> states;
    for (int64_t l = 0; l < 4; ++l) states.push_back(lanes.state(l));
    return ledger_of(mixture, states, [](double v) { return v; });
  };
  for (int step = 0; step < 10; ++step)
    for (int64_t l = 0; l < 4; ++l) reader.next(l);
  for (const Ledger::Line& l : ledger().total) EXPECT_EQ(l.open, 0u) << "nothing is left while the stage reads it";
  for (int64_t l = 0; l < 4; ++l) reader.next(l);
  const Ledger after = ledger();
  EXPECT_EQ(after.total[0].open, 0u);
  uint64_t open = 0;
  double unread = 0;
  for (int64_t l = 0; l < 4; ++l) {
    const Cursor& c = lanes.state(l).cursors[2];
    const uint64_t length = sources.books.length(mixture.document_at(2, c.epoch, c.position));
    open += length > c.piece + c.offset ? 1 : 0;
    unread += static_cast<double>(length - c.piece - c.offset);
  }
  EXPECT_GT(open, 0u);
  EXPECT_EQ(after.total[2].open, open);
  EXPECT_NEAR(after.total[2].unread, unread, 0.05 * unread + 8);
  EXPECT_NE(ledger_text(after).find("books: " + std::to_string(open) + " documents lie open"), std::string::npos) << ledger_text(after);
}

TEST(Mixture, EpochsCountTokensNotBegunDocuments) {
  const MemorySource one("one", {.documents = 1, .fixed = 960});
  const Mixture mixture = single_source(one);
  Lanes lanes(mixture, 8, 12);
  RowReader reader(lanes);
  for (int step = 1; step <= 25; ++step) {
    std::vector<LaneState> states;
    for (int64_t l = 0; l < 8; ++l) reader.next(l), states.push_back(lanes.state(l));
    EXPECT_NEAR(ledger_of(mixture, states, [](double v) { return v; }).total[0].epochs, step * 96.0 / 960, 0.02) << step;
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
        EXPECT_NEAR(static_cast<double>(seen[g][i]), mixture.segments[g].weights[i] * 100 * kT, 800) << "segment " << g << " source " << i;
      }
      EXPECT_EQ(all, 100u * kT);
    }
    EXPECT_EQ(seen[0][1] + seen[0][2], 0u);
    EXPECT_EQ(seen[1][0], 0u) << "not even what was left of the document under way";
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
  EXPECT_GT(starts[2], 40);
  EXPECT_NEAR(share[0], 0.50, 0.005);
  EXPECT_NEAR(share[1], 0.25, 0.005);
  EXPECT_NEAR(share[2], 0.25, 0.005);
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
