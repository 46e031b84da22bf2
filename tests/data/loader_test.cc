// The loader: the same batches for any number of ranks, workers and restarts; errors where they are due; a clean end in any state.
#include "data/loader.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "base/error.h"
#include "data/train_batches.h"
#include "support/memory_source.h"
#include "support/message_of.h"

namespace hlat {
namespace {

constexpr int64_t kLoaderLanes = 8, kLoaderT = 24;
constexpr int kSteps = 12;

struct LoaderData {
  MemorySource web{"web", {.documents = 50}};
  MemorySource books{"books", {.documents = 20, .first_token = 1'000'000, .longest = 200}};
  Mixture mixture = {.sources = {&web, &books},
                     .names = {"web", "books"},
                     .segments = {{1, shares({2, 1})}, {5, shares({1, 3})}},
                     .seed = 4,
                     .validation = 0.1};
};

DataIdentity loader_identity() {
  return {.tokenizer = 1, .eos = 2, .bos = -1, .seed = 4, .validation = 0.1, .lanes = kLoaderLanes, .seq_len = kLoaderT};
}

// A global batch.
struct Rows {
  std::vector<int32_t> inputs, targets;  // (lanes, T)
  void add(const std::vector<int32_t>& in, const std::vector<int32_t>& out) {
    inputs.insert(inputs.end(), in.begin(), in.end());
    targets.insert(targets.end(), out.begin(), out.end());
  }
  bool operator==(const Rows&) const = default;
};

// What plain reading gives, step by step.
std::vector<Rows> reference(const Mixture& mixture) {
  Lanes lanes(mixture, kLoaderLanes, kLoaderT);
  RowReader reader(lanes);
  std::vector<Rows> batches(kSteps);
  for (Rows& b : batches)
    for (int64_t l = 0; l < kLoaderLanes; ++l) {
      const std::vector<int32_t> row = reader.next(l);
      b.add({row.begin(), row.end() - 1}, {row.begin() + 1, row.end()});
    }
  return batches;
}

struct RanksShape {
  int64_t dp = 1;
  int workers = 1;
  int64_t micro = 1;  // rows of a micro-batch
  int64_t prefetch = 2;
};

// LoaderData-parallel ranks, each with its own batches.
class Ranks {
 public:
  Ranks(const Mixture& mixture, const RanksShape& shape, const std::optional<DataState>& from = {}) : batch_(shape.micro, kLoaderT) {
    for (int64_t r = 0; r < shape.dp; ++r)
      ranks_.push_back(std::make_unique<TrainBatches>(loader_identity(), mixture, part_of(kLoaderLanes, r, shape.dp),
                                                      LoaderOptions{.workers = shape.workers, .prefetch = shape.prefetch}, from));
  }
  Rows step() {
    const int64_t share = kLoaderLanes / static_cast<int64_t>(ranks_.size());
    Rows rows;
    for (const auto& batches : ranks_)
      for (int64_t first = 0; first < share; first += batch_.rows) {
        batches->read(first, batch_);
        rows.add(batch_.inputs, batch_.targets);
      }
    return rows;
  }
  DataState state() const {
    std::vector<RankLanes> others;
    for (size_t r = ranks_.size() - 1; r > 0; --r) others.push_back(RankLanes::parse(ranks_[r]->rank_lanes().save()));
    return join(ranks_[0]->position(), std::move(others));
  }

 private:
  Batch batch_;
  std::vector<std::unique_ptr<TrainBatches>> ranks_;
};

TEST(Loader, BatchesDoNotDependOnRanksOrWorkers) {
  const LoaderData d;
  const std::vector<Rows> expected = reference(d.mixture);
  for (const int64_t dp : {1, 2, 4, 8})
    for (const int workers : {1, 8})
      for (const int64_t prefetch : {1, 4}) {
        Ranks ranks(d.mixture, {.dp = dp, .workers = workers, .prefetch = prefetch});
        for (int step = 0; step < kSteps; ++step)
          ASSERT_EQ(ranks.step(), expected[static_cast<size_t>(step)]) << "dp " << dp << " workers " << workers << " step " << step;
      }
}

// Stops lie inside both stages of the mixture and at their border.
TEST(Loader, AStopAtEveryStepWithOtherRanksAndMicroBatchesChangesNothing) {
  const LoaderData d;
  const std::vector<Rows> expected = reference(d.mixture);
  const std::vector<int64_t> dp = {1, 8, 2, 4};
  auto ranks = std::make_unique<Ranks>(d.mixture, RanksShape{.dp = 2, .workers = 2, .micro = 2});
  Ranks whole(d.mixture, {.micro = kLoaderLanes});
  for (int step = 0; step < kSteps; ++step) {
    ASSERT_EQ(ranks->step(), expected[static_cast<size_t>(step)]) << step;
    whole.step();
    const DataState state = ranks->state();
    EXPECT_EQ(state, whole.state()) << "the position is that of what was served, whatever lies ready";
    ranks.reset();
    const int64_t next_dp = dp[static_cast<size_t>(step) % 4], micro = step % 2 == 0 ? kLoaderLanes / next_dp : 1;
    ranks = std::make_unique<Ranks>(d.mixture, RanksShape{.dp = next_dp, .workers = 1 + step % 3, .micro = micro},
                                    DataState::parse(state.save()));
  }
}

TEST(Loader, TheLedgerIsWhatTheRowsHeld) {
  const LoaderData d;
  Ranks ranks(d.mixture, {.dp = 4, .workers = 3});
  std::vector<uint64_t> served(2);
  for (int step = 1; step <= kSteps; ++step) {
    for (const int32_t t : ranks.step().inputs) ++served[static_cast<size_t>(t / 1'000'000)];
    const DataState s = ranks.state();
    std::vector<uint64_t> counted(2);
    for (const LaneState& l : s.lanes)
      for (size_t i = 0; i < l.counts.size(); ++i) counted[i % 2] += l.counts[i].tokens;
    ASSERT_EQ(counted, served) << step;
    ASSERT_EQ(counted[0] + counted[1], static_cast<uint64_t>(step * kLoaderLanes * kLoaderT));
  }
}

TEST(Loader, ReadsNoFurtherThanItsQueue) {
  const MemorySource source("web", {.documents = 0, .longest = 1});  // a token is a read
  const Mixture mixture = single_source(source);
  {
    Loader loader(Lanes(mixture, 4, 10), {.begin = 1, .count = 2}, {.workers = 3, .prefetch = 3});
    Batch batch(2, 10);
    loader.fill(0, batch);
    // Two lanes, one row taken and three ahead, eleven tokens for the first row and ten for others.
    const uint64_t most = 2 * (11 + 3 * 10);
    for (int i = 0; i < 200 && source.reads() < most; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(source.reads(), most);
    EXPECT_EQ(loader.rows_read(), 2u * (1 + 3));
  }
  EXPECT_EQ(Loader::row_bytes(2, 10, {.workers = 3, .prefetch = 3}), 2u * 3 * 11 * 4);
}

TEST(Loader, AnErrorComesWhereItsRowIsDue) {
  for (const int workers : {1, 4}) {
    MemorySource source("web", {.documents = 0, .longest = 1});
    const Mixture mixture = single_source(source);
    source.fail_from(25);  // one lane of rows of 10: the third row cannot be read
    Loader loader(Lanes(mixture, 1, 10), {.begin = 0, .count = 1}, {.workers = workers, .prefetch = 4});
    Batch row(1, 10);
    loader.fill(0, row);
    loader.fill(0, row);
    const std::string message = message_of([&] { loader.fill(0, row); });
    EXPECT_EQ(message, "web.jsonl: line 26 cannot be read");
    EXPECT_EQ(message_of([&] { loader.fill(0, row); }), message) << "and again, no hang";
    EXPECT_EQ(loader.states()[0].rows, 2u);
  }
}

TEST(Loader, EndsInAnyState) {
  for (int round = 0; round < 30; ++round) {
    MemorySource source("web", {.documents = 40});
    const Mixture mixture = single_source(source);
    if (round % 3 == 1) source.fail_from(static_cast<uint64_t>(round) * 5);
    Loader loader(Lanes(mixture, 6, 50), {.begin = 0, .count = 6}, {.workers = 1 + round % 5, .prefetch = 1 + round % 4});
    Batch batch(1, 50);
    for (int row = 0; row < round % 4; ++row) message_of([&] { loader.fill(row % 6, batch); });
    if (round % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // queues are full, or workers at work
  }
}

TEST(Loader, WrongUseIsRefused) {
  const LoaderData d;
  Loader loader(Lanes(d.mixture, kLoaderLanes, kLoaderT), {.begin = 2, .count = 2}, {});
  Batch one(1, kLoaderT), two(2, kLoaderT), longer(1, kLoaderT + 1);
  EXPECT_THROW(loader.fill(-1, one), CheckFailed);
  EXPECT_THROW(loader.fill(2, one), CheckFailed) << "rows are counted from the rank's own";
  EXPECT_THROW(loader.fill(1, two), CheckFailed);
  EXPECT_THROW(loader.fill(0, longer), CheckFailed);
  EXPECT_THROW(Loader(Lanes(d.mixture, kLoaderLanes, kLoaderT), {.begin = 7, .count = 2}, {}), CheckFailed);
  EXPECT_THROW(Loader(Lanes(d.mixture, kLoaderLanes, kLoaderT), {.begin = 0, .count = 2}, {.workers = 0}), CheckFailed);
}

}  // namespace
}  // namespace hlat
