// Packing lanes: no token is lost or repeated, a saved position continues, epochs hold every document once.
#include "data/lanes.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/error.h"
#include "data/embedded/corpus.h"
#include "support/memory_source.h"

namespace hlat {
namespace {

constexpr int64_t kLaneT = 16;

// The stream of a lane of `single_source(source)`: its shares of the epochs, one after the other.
std::vector<int32_t> stream_of(const MemorySource& source, const Mixture& mixture, uint64_t lane, uint64_t lanes, size_t length) {
  std::vector<int32_t> stream;
  if (source.documents() == 0) {
    for (uint64_t position = lane; stream.size() < length; position += lanes) {
      const std::vector<int32_t> tokens = source.tokens(position);
      if (mixture.has(0, position)) stream.insert(stream.end(), tokens.begin(), tokens.end());
    }
    return stream;
  }
  LaneShares shares(mixture, lanes);
  const auto reader = source.reader();
  for (uint64_t epoch = 0; stream.size() < length; ++epoch) {
    const auto [begin, end] = shares.share(0, epoch, lane);
    for (uint64_t p = begin.position; p < end.position || (p == end.position && end.at > 0); ++p) {
      const uint64_t document = mixture.document_at(0, epoch, p);
      if (!mixture.has(0, document)) continue;
      const std::vector<int32_t> tokens = source.tokens(document);
      const uint64_t from = p == begin.position ? reader->cut(document, begin.at) : 0;
      const uint64_t to = p == end.position ? reader->cut(document, end.at) : tokens.size();
      if (from < to) stream.insert(stream.end(), tokens.begin() + static_cast<int64_t>(from), tokens.begin() + static_cast<int64_t>(to));
    }
  }
  return stream;
}

TEST(Lanes, RowsConcatenateToTheLanesDocuments) {
  constexpr int64_t kLanes = 3, kRows = 40;
  for (const uint64_t documents : {0, 1, 2, 5, 40})
    for (const uint64_t piece : {1, 3, 20, 1000})
      for (const double validation : {0.0, 0.3}) {
        if (documents > 0 && documents < 5 && validation > 0) continue;  // nothing may be left
        const MemorySource source("numbers", {.documents = documents, .piece = piece});
        Mixture mixture = single_source(source, 9);
        mixture.validation = validation;
        Lanes lanes(mixture, kLanes, kLaneT);
        RowReader reader(lanes);
        for (int64_t l = 0; l < kLanes; ++l) {
          const std::vector<int32_t> stream = stream_of(source, mixture, l, kLanes, kRows * kLaneT + 1);
          for (int64_t r = 0; r < kRows; ++r) {
            const std::vector<int32_t> expected(stream.begin() + r * kLaneT, stream.begin() + (r + 1) * kLaneT + 1);
            ASSERT_EQ(reader.next(l), expected) << documents << " " << piece << " lane " << l << " row " << r;
          }
          const LaneState& s = lanes.state(l);
          EXPECT_EQ(s.rows, static_cast<uint64_t>(kRows));
          EXPECT_EQ(s.counts.at(0).tokens, static_cast<uint64_t>(kRows * kLaneT)) << "what the rows hold is what the ledger counts";
        }
      }
}

// Lanes that have read all positions below e * n have read every document e times.
TEST(Lanes, AnEpochHasEveryDocumentOnceAndTheNextAnotherOrder) {
  constexpr uint64_t kDocuments = 24, kLanes = 4;
  const MemorySource source("numbers", {.documents = kDocuments, .longest = 1, .cuts = 1});  // one token each: a row is T + 1 documents
  const Mixture mixture = single_source(source, 3);
  Lanes lanes(mixture, kLanes, kDocuments / kLanes);  // a row of a lane is its share of an epoch
  RowReader reader(lanes);
  std::vector<std::vector<int32_t>> orders;
  for (int epoch = 0; epoch < 6; ++epoch) {
    std::map<int32_t, int> seen;
    std::vector<int32_t> order;
    for (uint64_t l = 0; l < kLanes; ++l) {
      const std::vector<int32_t> row = reader.next(static_cast<int64_t>(l));
      for (size_t i = 0; i + 1 < row.size(); ++i) ++seen[row[i]], order.push_back(row[i]);
    }
    EXPECT_EQ(seen.size(), kDocuments) << epoch;
    for (const auto& [token, count] : seen) EXPECT_EQ(count, 1) << token;
    for (const auto& other : orders) EXPECT_NE(order, other);
    orders.push_back(order);
  }
}

// Every token of the text once, whatever the number of documents and lanes; then the next epoch begins.
TEST(Lanes, AnEpochHasEveryTokenOnceForFewLongDocuments) {
  for (const uint64_t documents : {1, 2, 3, 10, 63, 200})
    for (const int64_t lanes_count : {1, 2, 8, 64}) {
      const MemorySource source("numbers", {.documents = documents, .fixed = 900});
      const Mixture mixture = single_source(source, 5);
      LaneShares shares(mixture, static_cast<uint64_t>(lanes_count));
      std::map<int32_t, int> seen;
      size_t longest = 0;
      for (int64_t l = 0; l < lanes_count; ++l) {
        const auto [begin, end] = shares.share(0, 1, static_cast<uint64_t>(l));
        std::vector<int32_t> stream;
        for (uint64_t p = begin.position; p < end.position || (p == end.position && end.at > 0); ++p) {
          const std::vector<int32_t> tokens = source.tokens(mixture.document_at(0, 1, p));
          const uint64_t from = p == begin.position ? begin.at / 3 * 3 : 0, to = p == end.position ? end.at / 3 * 3 : tokens.size();
          stream.insert(stream.end(), tokens.begin() + static_cast<int64_t>(from), tokens.begin() + static_cast<int64_t>(to));
        }
        for (const int32_t t : stream) ++seen[t];
        longest = std::max(longest, stream.size());
      }
      EXPECT_EQ(seen.size(), documents * 900) << documents << " documents, " << lanes_count << " lanes";
      for (const auto& [token, count] : seen) ASSERT_EQ(count, 1) << token;
      const double share = static_cast<double>(documents) * 900 / static_cast<double>(lanes_count);
      EXPECT_LE(static_cast<double>(longest), share * (1 + 2.0 / 16) + 6) << documents << " documents, " << lanes_count << " lanes";
    }
}

// One long text, and ten texts at batch 64: no row repeats another until all text was read.
TEST(Lanes, NoRowRepeatsAnotherWhileUnreadTextIsLeft) {
  struct Case {
    uint64_t documents, length;
    int64_t lanes;
  };
  for (const Case& c : {Case{1, 990, 8}, Case{10, 900, 64}, Case{3, 950, 16}}) {
    const MemorySource source("numbers", {.documents = c.documents, .piece = 100, .fixed = c.length});
    const Mixture mixture = single_source(source, 7);
    Lanes lanes(mixture, c.lanes, kLaneT);
    RowReader reader(lanes);
    std::set<int32_t> targets;
    const int64_t steps = static_cast<int64_t>(c.documents * c.length) / (c.lanes * kLaneT) - 1;
    ASSERT_GT(steps, 3);
    for (int64_t step = 0; step < steps; ++step)
      for (int64_t l = 0; l < c.lanes; ++l) {
        const std::vector<int32_t> row = reader.next(l);
        for (size_t i = 1; i < row.size(); ++i) EXPECT_TRUE(targets.insert(row[i]).second) << "token " << row[i] << " again";
      }
  }
}

TEST(Lanes, TheSplitsShareNoDocumentAndMissNone) {
  constexpr uint64_t kDocuments = 60;
  const MemorySource source("numbers", {.documents = kDocuments, .longest = 1});
  std::map<int32_t, int> sides;
  for (const Split split : {Split::train, Split::validation}) {
    Mixture mixture = single_source(source, 3);
    mixture.validation = 0.2;
    mixture.split = split;
    Lanes lanes(mixture, 1, 200);
    RowReader reader(lanes);
    for (const int32_t t : reader.next(0)) sides[t] |= split == Split::train ? 1 : 2;
  }
  EXPECT_EQ(sides.size(), kDocuments);
  int held_out = 0;
  for (const auto& [token, side] : sides) {
    EXPECT_NE(side, 3) << token;
    held_out += side == 2 ? 1 : 0;
  }
  EXPECT_NEAR(held_out, 12, 10);
}

TEST(Lanes, RestoredPositionContinuesExactly) {
  // Row lengths put the cut inside documents, at their ends, on borders of pieces and across many short ones.
  const MemorySource source("numbers", {.documents = 30, .copies = 3});
  Mixture mixture = single_source(source, 5);
  mixture.validation = 0.1;
  for (const int64_t t : {1, 2, 7, 16, 64}) {
    Lanes lanes(mixture, 4, t);
    RowReader reader(lanes);
    for (int step = 0; step < 25; ++step) {
      reader.next(1);
      Lanes resumed(mixture, 4, t);
      resumed.restore(1, lanes.state(1));
      Lanes ahead = lanes;
      RowReader a(ahead), b(resumed);
      for (int row = 0; row < 3; ++row) EXPECT_EQ(b.next(1), a.next(1));
      EXPECT_EQ(resumed.state(1), ahead.state(1));
    }
    EXPECT_EQ(lanes.state(3).rows, 0u);
  }
}

TEST(Lanes, FloorIsTheSurprisalOfTheTargets) {
  const MemorySource known("known", {.surprisals = true}), unknown("unknown", {});
  const Mixture a = single_source(known), b = single_source(unknown);
  Lanes lanes(a, 2, kLaneT);
  RowReader reader(lanes);
  for (int step = 0; step < 5; ++step) {
    const std::vector<int32_t> row = reader.next(1);
    double sum = 0;
    for (size_t i = 1; i < row.size(); ++i) sum += 0.5 * row[i];
    ASSERT_TRUE(reader.surprisal);
    EXPECT_NEAR(*reader.surprisal, sum, 1e-9);
  }
  Lanes silent(b, 2, kLaneT);
  RowReader quiet(silent);
  quiet.next(0);
  EXPECT_FALSE(quiet.surprisal);
}

TEST(Lanes, FloorsApproachTheEntropyOfTheCorpus) {
  const EmbeddedCorpus corpus(9);
  const Mixture mixture = single_source(corpus);
  Lanes lanes(mixture, 16, 128);
  RowReader reader(lanes);
  double sum = 0;
  for (int step = 0; step < 100; ++step)
    for (int64_t lane = 0; lane < 16; ++lane) reader.next(lane), sum += *reader.surprisal;
  EXPECT_NEAR(sum / (100 * 16 * 128), *corpus.entropy(), 0.01);  // 200k tokens: four standard errors are about 0.006
}

TEST(Lanes, PartsTellWhereTokensComeFrom) {
  const MemorySource source("numbers", {.documents = 30});
  const Mixture mixture = single_source(source, 2);
  Lanes lanes(mixture, 2, 33);
  Readers readers(mixture);
  for (int r = 0; r < 20; ++r) {
    std::vector<int32_t> row(34);
    std::vector<RowPart> parts;
    lanes.read_row(1, readers, row.data(), &parts);
    int64_t end = 0;
    for (const RowPart& p : parts) {
      EXPECT_EQ(p.begin, end);
      end += p.count;
      const std::vector<int32_t> tokens = source.tokens(p.document);
      const std::vector<int32_t> here(row.begin() + p.begin, row.begin() + p.begin + p.count);
      EXPECT_NE(std::search(tokens.begin(), tokens.end(), here.begin(), here.end()), tokens.end());
      EXPECT_EQ(p.starts, here.front() == tokens.front());
      EXPECT_EQ(p.ends, here.back() == tokens.back());
    }
    EXPECT_EQ(end, 34);
  }
}

TEST(Lanes, CountsTheSameContentInOneRow) {
  const MemorySource all_different("a", {.documents = 64, .longest = 4}), two("b", {.documents = 64, .longest = 4, .copies = 32});
  const Mixture a = single_source(all_different), b = single_source(two);
  Lanes fine(a, 1, 30), poor(b, 1, 30);
  RowReader(fine).next(0);
  RowReader(poor).next(0);
  EXPECT_EQ(fine.state(0).repeats, 0u);
  // All but the first of each of the two contents are repeats.
  EXPECT_EQ(poor.state(0).repeats, poor.state(0).counts[0].documents - 2);
}

TEST(Lanes, WrongUseAndForeignPositionsAreRefused) {
  const MemorySource source("numbers", {});
  const Mixture mixture = single_source(source);
  Lanes lanes(mixture, 2, kLaneT);
  RowReader reader(lanes);
  EXPECT_THROW(reader.next(2), CheckFailed);
  EXPECT_THROW(reader.next(-1), CheckFailed);
  EXPECT_THROW(lanes.restore(0, LaneState{}), CheckFailed) << "no sources";
  EXPECT_THROW(Lanes(mixture, 0, kLaneT), CheckFailed);
  lanes.restore(0, {.rows = 1, .repeats = 0, .cursors = {{.position = 0, .offset = 1000}}, .counts = {{1, 16}}});
  EXPECT_THROW(reader.next(0), Error);
  lanes.restore(1, {.rows = 1, .repeats = 0, .cursors = {{.position = 0, .offset = 1}}, .counts = {{1, 16}}});
  EXPECT_THROW(reader.next(1), Error) << "the share of another lane";
}

}  // namespace
}  // namespace hlat
