// Packing lanes: no token is lost or repeated, batches do not depend on how lanes are grouped, a saved position continues.
#include "data/lanes.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "data/corpus.h"

namespace hlat {
namespace {

constexpr int64_t kT = 16;

// Every token of every document is different, so a lost or repeated one shows. Lengths run from 1 to well above T.
class NumberedSource : public DocumentSource {
 public:
  explicit NumberedSource(bool surprisals = true) : surprisals_(surprisals) {}
  Document document(uint64_t index) const override {
    Document d;
    const int length = 1 + static_cast<int>(index * 7 % 50);
    for (int i = 0; i < length; ++i) d.tokens.push_back(static_cast<int32_t>(index * 100) + i);
    if (surprisals_)
      for (const int32_t t : d.tokens) d.surprisals.push_back(0.5 * t);
    return d;
  }

 private:
  bool surprisals_;
};

struct Batch {
  std::vector<int32_t> inputs, targets;  // (count, T)
  double floor = 0;
};

Batch next(Lanes& lanes, int64_t first, int64_t count) {
  Batch b{std::vector<int32_t>(count * lanes.seq_len(), -1), std::vector<int32_t>(count * lanes.seq_len(), -1), 0};
  b.floor = lanes.next(first, count, b.inputs.data(), b.targets.data());
  return b;
}

TEST(Lanes, RowsConcatenateToTheLanesDocuments) {
  const NumberedSource source;
  constexpr int64_t kLanes = 3, kRows = 40;
  Lanes lanes(source, kLanes, kT);
  std::vector<std::vector<int32_t>> inputs(kLanes), targets(kLanes);
  for (int64_t row = 0; row < kRows; ++row) {
    const Batch b = next(lanes, 0, kLanes);
    for (int64_t l = 0; l < kLanes; ++l) {
      inputs[l].insert(inputs[l].end(), b.inputs.begin() + l * kT, b.inputs.begin() + (l + 1) * kT);
      targets[l].insert(targets[l].end(), b.targets.begin() + l * kT, b.targets.begin() + (l + 1) * kT);
    }
  }
  for (int64_t l = 0; l < kLanes; ++l) {
    std::vector<int32_t> stream;
    for (uint64_t index = l; stream.size() <= kRows * kT; index += kLanes) {
      const Document d = source.document(index);
      stream.insert(stream.end(), d.tokens.begin(), d.tokens.end());
    }
    EXPECT_EQ(inputs[l], std::vector<int32_t>(stream.begin(), stream.begin() + kRows * kT));
    EXPECT_EQ(targets[l], std::vector<int32_t>(stream.begin() + 1, stream.begin() + kRows * kT + 1));
  }
}

TEST(Lanes, BatchesDoNotDependOnTheGroupingOfLanes) {
  const EmbeddedCorpus corpus(4);
  constexpr int64_t kLanes = 8;
  for (const int64_t dp : {2, 4, 8}) {
    Lanes reference(corpus, kLanes, kT);
    // Each rank has its own Lanes and reads its share in micro-batches of one lane.
    std::vector<Lanes> ranks(dp, Lanes(corpus, kLanes, kT));
    for (int step = 0; step < 12; ++step) {
      const Batch all = next(reference, 0, kLanes);
      Batch joined;
      for (int64_t rank = 0; rank < dp; ++rank)
        for (int64_t l = rank * kLanes / dp; l < (rank + 1) * kLanes / dp; ++l) {
          const Batch part = next(ranks[rank], l, 1);
          joined.inputs.insert(joined.inputs.end(), part.inputs.begin(), part.inputs.end());
          joined.targets.insert(joined.targets.end(), part.targets.begin(), part.targets.end());
          joined.floor += part.floor / kLanes;
        }
      EXPECT_EQ(joined.inputs, all.inputs);
      EXPECT_EQ(joined.targets, all.targets);
      EXPECT_NEAR(joined.floor, all.floor, 1e-12);
    }
  }
}

TEST(Lanes, RestoredPositionContinuesExactly) {
  const NumberedSource source;
  // Row lengths put the cut inside documents, at their ends and across many short ones.
  for (const int64_t t : {1, 2, 7, 16, 64}) {
    Lanes lanes(source, 4, t);
    for (int step = 0; step < 25; ++step) {
      next(lanes, 0, 3);  // lane 3 stays behind
      Lanes resumed(source, 4, t);
      resumed.restore(lanes.states());
      Lanes copy = lanes;
      const Batch expected = next(copy, 0, 4), got = next(resumed, 0, 4);
      EXPECT_EQ(got.inputs, expected.inputs);
      EXPECT_EQ(got.targets, expected.targets);
      EXPECT_EQ(resumed.states(), copy.states());
      const std::vector<LaneState> start(4);  // going back is possible too: nothing of the later position stays
      resumed.restore(start);
      Lanes fresh(source, 4, t);
      EXPECT_EQ(next(resumed, 0, 4).targets, next(fresh, 0, 4).targets);
    }
    EXPECT_EQ(lanes.states()[3], LaneState{});
  }
}

TEST(Lanes, FloorIsTheMeanSurprisalOfTheTargets) {
  const NumberedSource known, unknown(false);
  Lanes lanes(known, 2, kT);
  for (int step = 0; step < 5; ++step) {
    const Batch b = next(lanes, 0, 2);
    double mean = 0;
    for (const int32_t t : b.targets) mean += 0.5 * t / (2 * kT);
    EXPECT_NEAR(b.floor, mean, 1e-9);
  }
  Lanes silent(unknown, 2, kT);
  EXPECT_TRUE(std::isnan(next(silent, 0, 2).floor));
}

TEST(Lanes, FloorsApproachTheEntropyOfTheCorpus) {
  const EmbeddedCorpus corpus(9);
  Lanes lanes(corpus, 16, 128);
  double mean = 0;
  for (int step = 0; step < 100; ++step) mean += next(lanes, 0, 16).floor / 100;
  EXPECT_NEAR(mean, corpus.entropy_per_token(), 0.01);  // 200k tokens: four standard errors are about 0.006
}

TEST(Lanes, WrongUseAndForeignPositionsAreRefused) {
  const NumberedSource source;
  Lanes lanes(source, 2, kT);
  std::vector<int32_t> room(4 * kT);
  EXPECT_THROW(lanes.next(1, 2, room.data(), room.data()), CheckFailed);
  EXPECT_THROW(lanes.next(0, 0, room.data(), room.data()), CheckFailed);
  EXPECT_THROW(lanes.restore(std::vector<LaneState>(3)), CheckFailed);
  EXPECT_THROW(Lanes(source, 0, kT), CheckFailed);
  lanes.restore({{0, 0}, {0, 1000}});
  EXPECT_THROW(lanes.next(1, 1, room.data(), room.data()), Error);
}

}  // namespace
}  // namespace hlat
