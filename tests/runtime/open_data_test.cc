// Which ranks open data and what they do to it: of a tp group one, on the first and the last stage, and of a host one that hashes and
// walks.
#include "runtime/open_data.h"

#include <gtest/gtest.h>

#include <cmath>
#include <mutex>
#include <numeric>

#include "backend/cpu/cpu_backend.h"
#include "base/error.h"
#include "data/embedded/sample_files.h"
#include "data/token_count.h"
#include "data/train_batches.h"
#include "runtime/assembly.h"
#include "support/temp_dir.h"
#include "support/thread_comm.h"
#include "train/trainer.h"

namespace hlat {
namespace {

Config stories(const test::TempDir& dir) {
  const EmbeddedCorpus corpus(5);
  Config c;
  c.data.tokenizer = dir.write("tokenizer.json", sample_tokenizer(corpus));
  c.data.sources = {{"a", dir.write("a.jsonl", sample_lines(corpus, 0, 60)), 3, "text"},
                    {"b", dir.write("b.jsonl", sample_lines(corpus, 60, 40)), 1, "text"}};
  c.data.validation = 0.1;
  c.model = {.preset = {}, .layers = 4, .hidden = 16, .heads = 2, .kv_heads = 2, .ffn = 24, .vocab = 2048};
  c.train.steps = 2;
  c.train.seq_len = 32;
  c.train.global_batch = 4;
  c.optim.warmup = 1;
  c.run.sample_lines = 0;
  c.parallel.dp = 1;
  return c;
}

struct Seen {
  std::vector<std::string> work;  // by rank
  double loss = 0, val_loss = 0;  // of rank 0
  uint64_t tokens = 0;
};

// Trains on thread ranks of which `per_host` in a row share a host.
Seen train_ranks(const Config& config, int per_host) {
  const int ranks = mesh_shape(config.parallel).ranks();
  Seen seen;
  seen.work.resize(static_cast<size_t>(ranks));
  std::mutex mutex;
  run_thread_ranks(ranks, [&](Comm& world) {
    std::vector<int> on_host(static_cast<size_t>(per_host));
    std::iota(on_host.begin(), on_host.end(), world.rank() / per_host * per_host);
    const auto data = open_data(config, world, on_host, 1);
    CpuBackend backend({.threads = 1, .isa = "auto"});
    Assembly assembly(config, backend, world, per_host);
    PlacedModel& model = assembly.build();
    model.executor().init_weights();
    TrainState state;
    int64_t step = 0;
    const TrainSummary s = train(config, {.plan = assembly.plan(), .peak_flops = 1, .model = model, .data = data.get()}, state, step);
    const std::lock_guard lock(mutex);
    const DataWork work = data ? data->work() : DataWork{};
    seen.work[static_cast<size_t>(world.rank())] =
        data ? fmt::format("{} opened, {} hashed, {} walked", work.files_opened, work.indices_hashed, work.documents_walked) : "none";
    EXPECT_EQ(state.data.has_value(), data != nullptr);
    if (world.rank() == 0) seen.loss = s.loss, seen.val_loss = s.validation->loss, seen.tokens = s.ledger.tokens();
  });
  return seen;
}

// All ranks, also those that open no data, learn how many steps the epochs are.
TEST(OpenData, EpochsBecomeTheStepsThatReadTheTextSoOften) {
  const test::TempDir dir;
  Config config = stories(dir);
  config.train.steps = 0;
  config.train.epochs = 2.5;
  config.parallel.tp = 2;
  const Dataset counted(config, 1);
  const auto tokens = static_cast<double>(count_tokens(counted.train(), 0, 1) + count_tokens(counted.train(), 1, 1));
  run_thread_ranks(2, [&](Comm& world) {
    const auto data = open_data(config, world, {0, 1}, 1);
    EXPECT_EQ(data == nullptr, world.rank() == 1);
    const Config resolved = with_steps(config, data.get(), world, 1);
    EXPECT_EQ(resolved.train.steps, static_cast<int64_t>(std::ceil(2.5 * tokens / (4 * 32)))) << "rank " << world.rank();
  });
  // The ledger agrees when one source is read to the end.
  config.parallel.tp = 1;
  config.data.sources.resize(1);
  run_thread_ranks(1, [&](Comm& world) {
    const auto data = open_data(config, world, {0}, 1);
    const Config resolved = with_steps(config, data.get(), world, 1);
    TrainBatches batches(*data, {.begin = 0, .count = 4});
    Batch batch(4, 32);
    for (int64_t step = 0; step < resolved.train.steps; ++step) batches.read(0, batch);
    EXPECT_NEAR(batches.ledger([](double v) { return v; }).total[0].epochs, 2.5, 0.06) << "in whole steps";
  });
}

TEST(OpenData, EpochsOfAnEndlessSourceAreRefused) {
  Config config;
  config.model.vocab = 4096;
  config.train.steps = 0;
  config.train.epochs = 1;
  config.parallel.dp = 1;
  run_thread_ranks(1, [&](Comm& world) {
    const auto data = open_data(config, world, {0}, 1);
    EXPECT_THROW(with_steps(config, data.get(), world, 1), UsageError);
  });
}

TEST(OpenData, OnlyWhereBatchesAreReadAndOnceOnAHost) {
  const test::TempDir dir;
  Config config = stories(dir);
  const Seen one = train_ranks(config, 1);
  config.parallel.tp = 2;
  config.parallel.pp = 4;
  const Seen eight = train_ranks(config, 8);
  // Rank = pp * 2 + tp. The index was made by the first run, so it is found and hashed once, by rank 0.
  EXPECT_EQ(eight.work, (std::vector<std::string>{"2 opened, 2 hashed, 100 walked", "none", "none", "none", "none", "none",
                                                  "2 opened, 0 hashed, 0 walked", "none"}));
  // In one step of training and rounding the layouts stay together: 1e-5 of a loss near 7.
  EXPECT_NEAR(eight.loss, one.loss, 1e-4);
  EXPECT_NEAR(eight.val_loss, one.val_loss, 1e-4);
  EXPECT_EQ(eight.tokens, one.tokens);
  // On two hosts the first reader of each hashes.
  EXPECT_EQ(train_ranks(config, 4).work, (std::vector<std::string>{"2 opened, 2 hashed, 100 walked", "none", "none", "none", "none", "none",
                                                                   "2 opened, 2 hashed, 100 walked", "none"}));
}

}  // namespace
}  // namespace hlat
