// The loader: the same batches for any number of ranks, workers and restarts; errors where they are due; a clean end in any state.
#include "data/loader.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "base/error.h"
#include "data/data_state.h"
#include "support/memory_source.h"
#include "support/message_of.h"

namespace hlat {
namespace {

constexpr int64_t kLanes = 8, kT = 24;
constexpr int kSteps = 12;

struct Data {
  MemorySource web{"web", {.documents = 50}};
  MemorySource books{"books", {.documents = 20, .first_token = 1'000'000, .longest = 200}};
  Mixture mixture = {.sources = {&web, &books},
                     .names = {"web", "books"},
                     .segments = {{1, shares({2, 1})}, {5, shares({1, 3})}},
                     .seed = 4,
                     .validation = 0.1};
};

DataIdentity identity() { return {.tokenizer = 1, .eos = 2, .bos = -1, .seed = 4, .validation = 0.1, .lanes = kLanes, .seq_len = kT}; }

struct Batch {
  std::vector<int32_t> inputs, targets;  // (lanes, T)
  bool operator==(const Batch&) const = default;
};

// What plain reading gives, step by step.
std::vector<Batch> reference(const Mixture& mixture) {
  Lanes lanes(mixture, kLanes, kT);
  RowReader reader(lanes);
  std::vector<Batch> batches(kSteps);
  for (Batch& b : batches)
    for (int64_t l = 0; l < kLanes; ++l) {
      const std::vector<int32_t> row = reader.next(l);
      b.inputs.insert(b.inputs.end(), row.begin(), row.end() - 1);
      b.targets.insert(b.targets.end(), row.begin() + 1, row.end());
    }
  return batches;
}

// Data-parallel ranks with a loader each, in micro-batches of `micro` lanes.
class Ranks {
 public:
  Ranks(Resumed data, int64_t dp, int workers, int64_t micro, int64_t prefetch = 2)
      : data_(std::make_unique<Resumed>(std::move(data))), share_(kLanes / dp), micro_(micro) {
    for (int64_t r = 0; r < dp; ++r) {
      Lanes lanes(data_->mixture, kLanes, kT);
      for (size_t l = 0; l < data_->lanes.size(); ++l) lanes.restore(static_cast<int64_t>(l), data_->lanes[l]);
      loaders_.push_back(
          std::make_unique<Loader>(std::move(lanes), r * share_, share_, LoaderOptions{.workers = workers, .prefetch = prefetch}));
    }
  }
  Batch step() {
    Batch b{std::vector<int32_t>(kLanes * kT), std::vector<int32_t>(kLanes * kT)};
    for (size_t r = 0; r < loaders_.size(); ++r)
      for (int64_t l = static_cast<int64_t>(r) * share_; l < static_cast<int64_t>(r + 1) * share_; l += micro_)
        loaders_[r]->fill(l, micro_, b.inputs.data() + l * kT, b.targets.data() + l * kT);
    return b;
  }
  DataState state() const {
    std::vector<DataState> parts;
    for (const auto& l : loaders_) parts.push_back(state_of(identity(), data_->mixture, data_->earlier, l->first_lane(), l->states()));
    return join(std::move(parts));
  }

 private:
  std::unique_ptr<Resumed> data_;
  int64_t share_, micro_;
  std::vector<std::unique_ptr<Loader>> loaders_;
};

TEST(Loader, BatchesDoNotDependOnRanksOrWorkers) {
  const Data d;
  const std::vector<Batch> expected = reference(d.mixture);
  for (const int64_t dp : {1, 2, 4, 8})
    for (const int workers : {1, 8})
      for (const int64_t prefetch : {1, 4}) {
        Ranks ranks({d.mixture, {}, {}}, dp, workers, 1, prefetch);
        for (int step = 0; step < kSteps; ++step)
          ASSERT_EQ(ranks.step(), expected[static_cast<size_t>(step)]) << "dp " << dp << " workers " << workers << " step " << step;
      }
}

TEST(Loader, AStopAtEveryStepWithOtherRanksChangesNothing) {
  const Data d;
  const std::vector<Batch> expected = reference(d.mixture);
  const std::vector<int64_t> dp = {1, 8, 2, 4};
  auto ranks = std::make_unique<Ranks>(Resumed{d.mixture, {}, {}}, 2, 2, 2);
  Ranks whole({d.mixture, {}, {}}, 1, 1, 8);
  for (int step = 0; step < kSteps; ++step) {
    ASSERT_EQ(ranks->step(), expected[static_cast<size_t>(step)]) << step;
    whole.step();
    const DataState state = ranks->state();
    EXPECT_EQ(state, whole.state()) << "the position is that of what was served, whatever lies ready";
    ranks.reset();
    ranks = std::make_unique<Ranks>(resume(identity(), d.mixture, DataState::parse(state.save())), dp[static_cast<size_t>(step) % 4],
                                    1 + step % 3, 1);
  }
}

TEST(Loader, TheLedgerIsWhatTheRowsHeld) {
  const Data d;
  Ranks ranks({d.mixture, {}, {}}, 4, 3, 1);
  std::vector<uint64_t> served(2);
  for (int step = 1; step <= kSteps; ++step) {
    for (const int32_t t : ranks.step().inputs) ++served[static_cast<size_t>(t / 1'000'000)];
    const DataState s = ranks.state();
    std::vector<uint64_t> counted(2);
    for (const LaneState& l : s.lanes)
      for (size_t i = 0; i < l.counts.size(); ++i) counted[i % 2] += l.counts[i].tokens;
    ASSERT_EQ(counted, served) << step;
    ASSERT_EQ(counted[0] + counted[1], static_cast<uint64_t>(step * kLanes * kT));
  }
}

TEST(Loader, ReadsNoFurtherThanItsQueue) {
  const MemorySource source("web", {.documents = 0, .longest = 1});  // a token is a read
  const Mixture mixture = single_source(source);
  {
    Loader loader(Lanes(mixture, 4, 10), 1, 2, {.workers = 3, .prefetch = 3});
    std::vector<int32_t> in(20), out(20);
    loader.fill(1, 2, in.data(), out.data());
    // Two lanes, one row taken and three ahead, eleven tokens for the first row and ten for others.
    const uint64_t most = 2 * (11 + 3 * 10);
    for (int i = 0; i < 200 && source.reads() < most; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(source.reads(), most);
  }
  EXPECT_EQ(Loader::row_bytes(2, 10, {.workers = 3, .prefetch = 3}), 2u * 3 * 11 * 4);
}

TEST(Loader, AnErrorComesWhereItsRowIsDue) {
  for (const int workers : {1, 4}) {
    MemorySource source("web", {.documents = 0, .longest = 1});
    const Mixture mixture = single_source(source);
    source.fail_from(25);  // one lane of rows of 10: the third row cannot be read
    Loader loader(Lanes(mixture, 1, 10), 0, 1, {.workers = workers, .prefetch = 4});
    std::vector<int32_t> in(10), out(10);
    loader.fill(0, 1, in.data(), out.data());
    loader.fill(0, 1, in.data(), out.data());
    const std::string message = message_of([&] { loader.fill(0, 1, in.data(), out.data()); });
    EXPECT_EQ(message, "web.jsonl: line 26 cannot be read");
    EXPECT_EQ(message_of([&] { loader.fill(0, 1, in.data(), out.data()); }), message) << "and again, no hang";
    EXPECT_EQ(loader.states()[0].rows, 2u);
  }
}

TEST(Loader, EndsInAnyState) {
  for (int round = 0; round < 30; ++round) {
    MemorySource source("web", {.documents = 40});
    const Mixture mixture = single_source(source);
    if (round % 3 == 1) source.fail_from(static_cast<uint64_t>(round) * 5);
    Loader loader(Lanes(mixture, 6, 50), 0, 6, {.workers = 1 + round % 5, .prefetch = 1 + round % 4});
    std::vector<int32_t> in(50), out(50);
    for (int row = 0; row < round % 4; ++row) message_of([&] { loader.fill(row % 6, 1, in.data(), out.data()); });
    if (round % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // queues are full, or workers at work
  }
}

TEST(Loader, WrongUseIsRefused) {
  const Data d;
  std::vector<int32_t> room(4 * kT);
  Loader loader(Lanes(d.mixture, kLanes, kT), 2, 2, {});
  EXPECT_THROW(loader.fill(1, 1, room.data(), room.data()), CheckFailed);
  EXPECT_THROW(loader.fill(3, 2, room.data(), room.data()), CheckFailed);
  EXPECT_THROW(Loader(Lanes(d.mixture, kLanes, kT), 7, 2, {}), CheckFailed);
  EXPECT_THROW(Loader(Lanes(d.mixture, kLanes, kT), 0, 2, {.workers = 0}), CheckFailed);
}

}  // namespace
}  // namespace hlat
