// Checkpoints of every version of the format that there was, committed to tests/fixtures, load forever. values.txt says what is in them,
// and was written from the state of the run, not from the checkpoint. A new version adds a fixture and leaves the others as they are:
//   HLAT_WRITE_FIXTURE=DIR build/tests/unit_tests --gtest_filter='*CheckpointFixture*'
// trains the tiny run, and writes its checkpoint and its values to DIR.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/rng.h"
#include "checkpoint/checkpoint_folder.h"
#include "config/saved.h"
#include "support/paths.h"
#include "support/saved_run.h"
#include "support/temp_dir.h"
#include "train/state_records.h"

namespace hlat {
namespace {

constexpr int64_t kStep = 3;

// Weights that are no function of the masters, rows and columns split over tp, optimizer state over dp: all kinds of pieces.
Config fixture_config() {
  Config c;
  c.model = {.preset = {}, .layers = 1, .hidden = 8, .heads = 2, .kv_heads = 1, .ffn = 12, .vocab = 20};
  c.model.init_std = 0.1;
  c.train.seq_len = 8;
  c.train.global_batch = 4;
  c.train.micro_batch = 1;
  c.train.precision = PrecisionKind::mixed_sr;
  c.optim.lr = 1e-3;
  c.parallel.tp = 2;
  c.parallel.dp = 2;
  return c;
}

// A line for each tensor: its key, elements, first element, and a hash of all of them as f32.
std::string values_text(const GlobalState& state) {
  std::string text;
  for (const auto& [key, values] : state) {
    const std::vector<float> narrow(values.begin(), values.end());
    std::string bytes(narrow.size() * sizeof(float), '\0');
    std::memcpy(bytes.data(), narrow.data(), bytes.size());
    text += fmt::format("{} {} {:.9g} {:016x}\n", key, values.size(), narrow.front(), hash_name(bytes));
  }
  return text;
}

TEST(CheckpointFixture, Version1Loads) {
  if (const char* folder = std::getenv("HLAT_WRITE_FIXTURE")) {
    const TrainedPart saved = run_and_save(fixture_config(), folder, kStep, 0);
    std::ofstream(std::filesystem::path(folder) / "values.txt") << values_text(saved.begin.tensors);
    GTEST_SKIP() << "the fixture is written to " << folder;
  }
  const std::filesystem::path fixture = test::source_path("tests/fixtures/checkpoint_v1");
  const std::filesystem::path folder = checkpoint_path(fixture, kStep);
  const std::string expected = test::slurp((fixture / "values.txt").string());
  Config one_rank = fixture_config(), many = fixture_config();
  one_rank.parallel.tp = one_rank.parallel.dp = 1;
  many.parallel.dp = 4;
  for (const Config& config : {one_rank, fixture_config(), many}) EXPECT_EQ(values_text(load_on_ranks(config, folder)), expected);

  const CheckpointIndex index = read_index(folder);
  EXPECT_EQ(index.content, CheckpointContent::training);
  EXPECT_EQ(index.run, "tiny-run");
  EXPECT_EQ(index.step, kStep);
  EXPECT_EQ(index.tokens, kStep * 4 * 8);
  EXPECT_EQ(index.tensors.size(), static_cast<size_t>(std::count(expected.begin(), expected.end(), '\n')));
  const Config saved = config_from_json(nlohmann::ordered_json::parse(index.config)).config;
  EXPECT_EQ(saved.model, fixture_config().model);
  EXPECT_EQ(saved.train, fixture_config().train);
  const DataState position = saved_position(index);
  EXPECT_EQ(position.step(), kStep);
  EXPECT_EQ(position.lanes.size(), 4u);
}

}  // namespace
}  // namespace hlat
