// hlat ckpt: ls, inspect, verify, diff, average and prune, as a user calls them, and what wrong input says.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint_folder.h"
#include "record/folder_lease.h"
#include "support/run_binary.h"
#include "support/small_checkpoint.h"
#include "support/temp_dir.h"

namespace hlat::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// A run with checkpoints of steps 10, 20 and 30, weights of step 15 and the rest of a save.
class CliCkpt : public testing::Test {
 protected:
  CliCkpt() {
    for (int64_t step = 10; step <= 30; step += 10) {
      SmallCheckpoint c = small_model(static_cast<uint32_t>(step));
      c.step = step;
      c.tokens = step * 128;
      step == 20 ? write_in_columns(steps_, c, 2) : write_small(steps_, c);
    }
    SmallCheckpoint weights = small_model(15, false);
    weights.step = 15;
    write_small(run_ / "weights", weights);
    fs::create_directories(steps_ / "step_40.tmp");
    std::ofstream(run_ / "config.yaml") << "run: {dir: " << run_.string() << "}\n";
  }

  static RunResult ckpt(std::vector<std::string> words) {
    words.insert(words.begin(), "ckpt");
    return run_binary(words);
  }
  static std::string out(const std::vector<std::string>& words) {
    const RunResult r = ckpt(words);
    EXPECT_EQ(r.exit_code, 0) << r.err;
    EXPECT_EQ(r.err, "");
    return r.out;
  }
  static Json json(std::vector<std::string> words) {
    words.emplace_back("--json");
    return Json::parse(out(words));
  }
  static void expect_has(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text << "\nwithout: " << part;
  }
  std::string step(int n) const { return (steps_ / fmt::format("step_{}", n)).string(); }

  const TempDir dir_;
  const fs::path run_ = fs::path(dir_.path("run"));
  const fs::path steps_ = run_ / "checkpoints";
};

TEST_F(CliCkpt, LsListsCheckpointsWeightsAndLeftovers) {
  fs::resize_file(steps_ / "step_30/part_00000.safetensors", 100);
  const std::string text = out({"ls", run_.string()});
  expect_has(text, steps_.string() + "\n");
  expect_has(text, "step  tokens    loss");
  expect_has(text, "training          whole\n");
  expect_has(text, "training          whole, latest\n");
  expect_has(text, "NOT WHOLE: part_00000.safetensors has 100 bytes instead of ");
  expect_has(text, "step_40.tmp");
  expect_has(text, (run_ / "weights").string() + "\n");
  const Json j = json({"ls", run_.string()});
  ASSERT_EQ(j["folders"].size(), 2u);
  EXPECT_EQ(j["folders"][0]["latest"], 20) << "that is whole";
  const Json& list = j["folders"][0]["checkpoints"];
  ASSERT_EQ(list.size(), 4u);
  EXPECT_EQ(list[1]["tokens"], 2560);
  EXPECT_EQ(list[1]["loss"], 3.25);
  EXPECT_EQ(list[1]["whole"], true);
  EXPECT_EQ(list[2]["whole"], false);
  EXPECT_EQ(list[3]["leftover"], true);
  EXPECT_EQ(j["folders"][1]["checkpoints"][0]["content"], "weights");
}

TEST_F(CliCkpt, LsVerifyReadsEverything) {
  flip_byte(steps_ / "step_30/part_00000.safetensors", -1);
  expect_has(out({"ls", run_.string()}), "training          whole, latest\n");
  EXPECT_EQ(json({"ls", run_.string()})["folders"][0]["latest"], 30);
  const Json j = json({"ls", run_.string(), "--verify"});
  EXPECT_EQ(j["folders"][0]["latest"], 20);
  expect_has(j["folders"][0]["checkpoints"][2]["problem"], "part_00000.safetensors: piece 15 (moment2:head.output:0)");
}

TEST_F(CliCkpt, InspectShowsHeaderTensorsStatisticsAndSlices) {
  const std::string text = out({"inspect", run_.string()});
  expect_has(text, "training, step 30, 3.84k tokens, loss 3.2500\n");
  expect_has(text, "2026-01-02T03:04:05Z by run run-a, hlat 0.0.0\n");
  expect_has(text, "layers 2, heads 2, rope_theta 10000.0\n");
  expect_has(text, "progress v1 (11 B)\n");
  expect_has(text, "layers.0.attention.qkv  moment2  f32   (24, 8)");
  const Json j = json({"inspect", run_.string(), "--step", "20", "--tensor", "layers.0", "--slices"});
  EXPECT_EQ(j["step"], 20);
  EXPECT_EQ(j["config"]["model"]["layers"], 2);
  EXPECT_EQ(j["records"][0]["version"], 1);
  ASSERT_EQ(j["tensors"].size(), 8u) << "norm and qkv, four of each";
  const Json& qkv = j["tensors"][4];
  EXPECT_EQ(qkv["name"], "layers.0.attention.qkv");
  EXPECT_EQ(qkv["kind"], "weight");
  EXPECT_EQ(qkv["dtype"], "bf16");
  EXPECT_EQ(qkv["bytes"], 384);
  EXPECT_NEAR(qkv["stats"]["rms"].get<double>(), 0.02, 0.005);
  EXPECT_EQ(qkv["stats"]["not_finite"], 0);
  ASSERT_EQ(qkv["slices"].size(), 2u);
  EXPECT_EQ(qkv["slices"][1]["file"], "rank_1.safetensors");
  EXPECT_EQ(qkv["slices"][1]["first"], 4);
  EXPECT_EQ(qkv["slices"][1]["run"], 4);
  EXPECT_EQ(qkv["slices"][1]["stride"], 8);
  EXPECT_FALSE(json({"inspect", run_.string(), "--no-stats"})["tensors"][0].contains("stats"));
  expect_has(out({"inspect", run_.string(), "--no-stats", "--slices"}), "checksum");
}

TEST_F(CliCkpt, VerifyNamesEveryProblemAndEndsWithTwo) {
  EXPECT_EQ(json({"verify", step(10), step(20)})["whole"], true);
  expect_has(out({"verify", run_.string()}), "step_30: whole; ");
  flip_byte(steps_ / "step_20/rank_0.safetensors", -1);
  flip_byte(steps_ / "step_20/rank_1.safetensors", -1);
  flip_byte(steps_ / "step_30/index.json", 200);
  const RunResult r = ckpt({"verify", step(10), step(20), step(30)});
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_EQ(r.err, "2 of 3 checkpoints are damaged\n");
  expect_has(r.out, "step_10: whole; ");
  expect_has(r.out, "rank_0.safetensors: piece ");
  expect_has(r.out, "rank_1.safetensors: piece ");
  expect_has(r.out, "step_30/index.json: ");
  const RunResult one = ckpt({"verify", step(20), "--json"});
  EXPECT_EQ(one.exit_code, 2);
  EXPECT_EQ(one.err, step(20) + " is damaged\n");
  EXPECT_EQ(Json::parse(one.out)["checkpoints"][0]["problems"].size(), 2u);
}

TEST_F(CliCkpt, DiffTellsLargestAndMeanAndTheExitCodeWhenAsked) {
  const std::string text = out({"diff", step(10), step(20)});
  expect_has(text, "A " + step(10) + ": step 10, 1.28k tokens, run run-a\n");
  expect_has(text, "largest/rms");
  expect_has(text, "0 of 16 tensors that both have are identical\n");
  EXPECT_EQ(ckpt({"diff", step(10), step(20), "--exit-code"}).exit_code, 1);
  EXPECT_EQ(ckpt({"diff", step(10), step(20), "--exit-code"}).err, "") << "it is no failure";
  expect_has(out({"diff", step(10), step(10), "--exit-code"}), "16 of 16 tensors that both have are identical\n");
  const Json j = json({"diff", step(10), step(20), "--weights"});
  EXPECT_EQ(j["identical"], false);
  ASSERT_EQ(j["tensors"].size(), 4u);
  EXPECT_GT(j["tensors"][0]["largest"], j["tensors"][0]["mean"]);
  EXPECT_EQ(j["tensors"][0]["largest_at"].size(), 2u);
}

TEST_F(CliCkpt, AverageMakesACheckpointOfWeights) {
  const std::string to = dir_.path("mean");
  expect_has(out({"average", step(10), step(20), "--out", to, "--weights", "0.25,0.75", "--dtype", "f32"}),
             to + "/step_20: the average of the masters of 2 checkpoints, ");
  CheckpointReader a(step(10)), b(step(20)), mean(to + "/step_20");
  const auto x = read_values(a, StateKind::master, "embedding"), y = read_values(b, StateKind::master, "embedding"),
             z = read_values(mean, StateKind::weight, "embedding");
  for (size_t i = 0; i < z.size(); ++i) EXPECT_EQ(z[i], static_cast<float>(0.25 * x[i] + 0.75 * static_cast<double>(y[i])));
  EXPECT_EQ(json({"inspect", to})["content"], "weights");
  EXPECT_EQ(json({"average", step(10), step(20), "--out", dir_.path("mean2")})["average"]["kind"], "master");
}

TEST_F(CliCkpt, PruneKeepsTheLatestUnlessARunIsLive) {
  expect_has(out({"prune", run_.string(), "--keep", "1", "--dry-run"}), "1 would stay, 3 go: ");
  EXPECT_EQ(checkpoint_steps(steps_).size(), 3u);
  {
    const FolderLease live(run_, 60);
    const RunResult r = ckpt({"prune", steps_.string(), "--keep", "1"});
    EXPECT_EQ(r.exit_code, 2);
    expect_has(r.err, fmt::format("another run is writing to {}: process {} on ", fs::weakly_canonical(run_).string(), getpid()));
    EXPECT_EQ(checkpoint_steps(steps_).size(), 3u);
  }
  const Json j = json({"prune", run_.string(), "--keep", "1", "--keep-every", "20"});
  EXPECT_EQ(j["removed"].size(), 1u);
  EXPECT_EQ(j["leftovers"].size(), 1u);
  EXPECT_EQ(checkpoint_steps(steps_), (std::vector<int64_t>{20, 30}));
  EXPECT_FALSE(fs::exists(steps_ / "step_40.tmp"));
  EXPECT_FALSE(fs::exists(run_ / "run.lock")) << "given back";
  EXPECT_TRUE(fs::exists(run_ / "weights/step_15")) << "kept for good";
}

TEST_F(CliCkpt, WrongInputIsOneUsefulLine) {
  const std::string hf = dir_.path("hf");
  fs::create_directories(hf);
  std::ofstream(hf + "/config.json") << "{}";
  std::ofstream(hf + "/model.safetensors") << "x";
  const std::string run = run_.string(), odd = dir_.path("odd");
  SmallCheckpoint other = small_model(1);
  other.tensors.resize(4);
  write_small(odd, other);
  struct Case {
    std::vector<std::string> words;
    std::string says;
  };
  const std::vector<Case> cases = {
      {{"verfy", run}, "hlat ckpt: there is no command verfy; did you mean verify?"},
      {{"ls", dir_.path("rnu")}, "rnu: there is no such folder; did you mean "},
      {{"ls", step(10)}, "step_10 is a checkpoint itself, not a folder with checkpoints"},
      {{"inspect", run, "--step", "21"}, "has no checkpoint of step 21; the nearest is step 20, the latest 30"},
      {{"inspect", hf}, " is a folder of Hugging Face: make a checkpoint of it first, with hlat ckpt import "},
      {{"inspect", run, "--tensor", "layers.0.atention.qkv"}, "there is no such tensor; did you mean layers.0.attention.qkv?"},
      {{"inspect", run, "--slice"}, "hlat ckpt inspect: there is no option --slice; did you mean --slices?"},
      {{"verify", step(10) + "/part_00000.safetensors"}, "is a file; a checkpoint is a folder: " + step(10)},
      {{"verify", (steps_ / "step_40.tmp").string()}, "is what a save that did not end has left over"},
      {{"diff", run}, "checkpoints"},
      {{"average", step(10), step(20), "--out", dir_.path("x"), "--weights", "1;2"}, "--weights 1;2: give numbers such as 0.3,0.7"},
      {{"average", step(10), step(20), "--out", dir_.path("x"), "--weights", "1"}, "there are 1 weights for 2 checkpoints"},
      {{"average", step(10), odd, "--out", dir_.path("x")}, "has the weight "},
      {{"average", step(10), step(20), "--out", dir_.path("x"), "--dtype", "f16"}, "f16"},
      {{"average", step(10), step(20), "--out", hf + "/config.json"}, "config.json"},
      {{"prune", run, "--keep", "0"}, "--keep"},
      {{"prune", run}, "--keep"},
  };
  for (const Case& c : cases) {
    const RunResult r = ckpt(c.words);
    EXPECT_EQ(r.exit_code, 2) << c.says << "\n" << r.err;
    EXPECT_EQ(r.out, "") << c.says;
    EXPECT_NE(r.err.find(c.says), std::string::npos) << r.err << "\nwithout: " << c.says;
    const std::string line = r.err.substr(0, r.err.find("Run with --help"));
    EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1) << r.err;
  }
  EXPECT_EQ(checkpoint_steps(steps_).size(), 3u);
  EXPECT_FALSE(fs::exists(dir_.path("x")));
}

}  // namespace
}  // namespace hlat::test
