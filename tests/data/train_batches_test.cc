// A rank's batches: their entropy where the source knows it, and what all ranks have read together.
#include "data/train_batches.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "support/memory_source.h"

namespace hlat {
namespace {

constexpr int64_t kBatchLanes = 4, kBatchT = 16;

DataIdentity batches_identity() {
  return {.tokenizer = 1, .eos = 2, .bos = -1, .seed = 0, .validation = 0, .lanes = kBatchLanes, .seq_len = kBatchT};
}

TEST(TrainBatches, EntropyIsTheMeanSurprisalOfTheBatch) {
  const MemorySource known("known", {.surprisals = true}), unknown("unknown", {.first_token = 1'000'000});
  TrainBatches batches(batches_identity(), single_source(known), part_of(kBatchLanes, 1, 2), {});
  Batch batch(2, kBatchT);
  EXPECT_FALSE(batches.entropy()) << "nothing is read yet";
  for (int step = 0; step < 5; ++step) {
    batches.read(0, batch);
    ASSERT_TRUE(batches.entropy());
    EXPECT_NEAR(*batches.entropy(), 0.5 * std::accumulate(batch.targets.begin(), batch.targets.end(), 0.0) / (2 * kBatchT), 1e-9);
  }
  Mixture mixed = single_source(known);
  mixed.sources.push_back(&unknown), mixed.names.push_back("unknown");
  mixed.segments = {{1, {0.5, 0.5}}};
  for (const Mixture& m : {single_source(unknown), mixed}) {
    TrainBatches silent(batches_identity(), m, {.begin = 0, .count = kBatchLanes}, {});
    Batch all(kBatchLanes, kBatchT);
    silent.read(0, all);
    EXPECT_FALSE(silent.entropy()) << "a part of the text is from an unknown source";
  }
}

TEST(TrainBatches, TheEmbeddedCorpusKnowsItsFloor) {
  Config config;
  config.data.embedded = true;
  config.model.vocab = 4096;
  config.train.seq_len = 64;
  config.train.global_batch = kBatchLanes;
  const Dataset data(config, 1);
  ASSERT_TRUE(data.floor());
  TrainBatches batches(data, {.begin = 0, .count = kBatchLanes});
  Batch batch(kBatchLanes, 64);
  batches.read(0, batch);
  ASSERT_TRUE(batches.entropy());
  EXPECT_NEAR(*batches.entropy(), *data.floor(), 0.5);
}

// Every rank knows the rows of all, and they are those of the ledger.
TEST(TrainBatches, RowsBySourceAreThoseOfTheLedger) {
  const MemorySource web("web", {}), code("code", {.first_token = 1'000'000}), books("books", {.first_token = 2'000'000});
  Mixture mixed = single_source(web);
  mixed.sources = {&web, &code, &books}, mixed.names = {"web", "code", "books"};
  mixed.segments = {{1, {0.7, 0.3, 0}}, {6, {0, 0.5, 0.5}}};
  TrainBatches whole(batches_identity(), mixed, {.begin = 0, .count = kBatchLanes}, {});
  const TrainBatches half(batches_identity(), mixed, part_of(kBatchLanes, 1, 2), {});
  std::map<std::string, int64_t> sums;
  Batch batch(kBatchLanes, kBatchT);
  for (int64_t step = 1; step <= 9; ++step) {
    whole.read(0, batch);
    const auto rows = whole.source_rows(step);
    EXPECT_EQ(rows, half.source_rows(step)) << step;
    ASSERT_EQ(rows.size(), 2u) << "sources without a weight are left out";
    EXPECT_EQ(rows[0].first, step < 6 ? "web" : "code");
    EXPECT_EQ(rows[0].second + rows[1].second, kBatchLanes);
    for (const auto& [source, n] : rows) sums[source] += n;
  }
  for (const Ledger::Line& line : whole.ledger([](double v) { return v; }).total)
    EXPECT_EQ(static_cast<int64_t>(line.tokens), sums[line.source] * kBatchT) << line.source;
  EXPECT_TRUE(TrainBatches(batches_identity(), single_source(web), part_of(kBatchLanes, 0, 2), {}).source_rows(1).empty());
}

TEST(TrainBatches, TheLedgerSumsOverRanks) {
  const MemorySource source("web", {});
  const Mixture mixture = single_source(source);
  TrainBatches whole(batches_identity(), mixture, {.begin = 0, .count = kBatchLanes}, {});
  TrainBatches first(batches_identity(), mixture, part_of(kBatchLanes, 0, 2), {}),
      second(batches_identity(), mixture, part_of(kBatchLanes, 1, 2), {});
  Batch all(kBatchLanes, kBatchT), half(kBatchLanes / 2, kBatchT);
  for (int step = 0; step < 7; ++step) whole.read(0, all), first.read(0, half), second.read(0, half);
  std::vector<double> sums;
  second.ledger([&](double v) { return sums.push_back(v), v; });
  size_t call = 0;
  const Ledger joined = first.ledger([&](double v) { return v + sums[call++]; });
  EXPECT_EQ(call, sums.size());
  EXPECT_EQ(ledger_text(joined), ledger_text(whole.ledger([](double v) { return v; })));
  EXPECT_EQ(joined.tokens(), 7u * kBatchLanes * kBatchT);
  EXPECT_GE(whole.rows_read(), 7u * kBatchLanes);
}

}  // namespace
}  // namespace hlat
