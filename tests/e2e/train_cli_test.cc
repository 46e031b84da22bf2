// Runs of the real binary: what train, plan and bench leave, print and refuse.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/metrics_lines.h"
#include "support/paths.h"
#include "support/run_binary.h"
#include "support/temp_dir.h"

namespace hlat::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// A few steps of the example, made smaller still.
std::vector<std::string> short_run(const std::string& dir, std::vector<std::string> more = {}) {
  std::vector<std::string> args = {"train",          "--config",         nano_config(),          "run.dir=" + dir,
                                   "train.steps=3",  "train.seq_len=64", "train.global_batch=4", "train.micro_batch=2",
                                   "optim.warmup=1", "device.threads=1"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

TEST(CliTrain, LeavesARunFolderAndASummary) {
  const TempDir dir;
  const RunResult r = run_binary(short_run(dir.path("run")));
  ASSERT_EQ(r.exit_code, 0) << r.err;
  for (const char* text : {"final loss", "floor", "tokens/s", "MFU", "planned", "the model writes"})
    EXPECT_NE(r.out.find(text), std::string::npos) << text << "\n" << r.out;
  EXPECT_EQ(r.err.find('\r'), std::string::npos) << "no live line in a pipe";
  const auto lines = metrics_of(dir.path("run"));
  ASSERT_EQ(lines.size(), 3u);
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i]["step"], i + 1);
    EXPECT_EQ(lines[i]["tokens"], (i + 1) * 256);
    for (const char* key : {"loss", "floor", "grad_norm", "param_norm", "lr", "step_s", "tokens_per_s", "mfu", "hfu", "data_wait_s"})
      EXPECT_TRUE(lines[i].contains(key) && lines[i][key].is_number()) << key;
  }
  EXPECT_LT(lines[2]["loss"], lines[0]["loss"]);
  std::vector<std::string> given = short_run(dir.path("run"));
  given[0] = "config";
  EXPECT_EQ(run_binary({"config", "--config", dir.path("run/config.yaml")}).out, run_binary(given).out) << "the record is the config";
  EXPECT_NE(slurp(dir.path("run/config.yaml")).find("\n  dp: auto  # 1 in this run\n"), std::string::npos);
  bool events = false;
  for (const auto& f : fs::directory_iterator(dir.path("run"))) events = events || f.path().filename().string().starts_with("events.out.");
  EXPECT_TRUE(events);
  EXPECT_NE(slurp(dir.path("run/log.txt")).find("equals the plan"), std::string::npos);
}

TEST(CliTrain, TwoRunsAreBitIdentical) {
  const TempDir dir;
  for (const char* precision : {"fp32", "bf16_sr"}) {
    const std::string option = std::string("train.precision=") + precision;
    ASSERT_EQ(run_binary(short_run(dir.path("a"), {option})).exit_code, 0);
    ASSERT_EQ(run_binary(short_run(dir.path("b"), {option})).exit_code, 0);
    const auto a = metrics_of(dir.path("a")), b = metrics_of(dir.path("b"));
    ASSERT_EQ(a.size(), 3u);
    for (size_t i = 0; i < a.size(); ++i)
      for (const char* key : {"loss", "grad_norm", "param_norm"}) EXPECT_EQ(a[i][key], b[i][key]) << precision << " " << key;
  }
}

TEST(CliTrain, AnEarlierRunIsKept) {
  const TempDir dir;
  ASSERT_EQ(run_binary(short_run(dir.path("run"))).exit_code, 0);
  const std::string before = slurp(dir.path("run/metrics.jsonl"));
  ASSERT_EQ(run_binary(short_run(dir.path("run"), {"run.seed=7", "--fresh"})).exit_code, 0);
  EXPECT_EQ(slurp(dir.path("run/previous_1/metrics.jsonl")), before);
  EXPECT_NE(slurp(dir.path("run/metrics.jsonl")), before);
}

TEST(CliTrain, JsonSummaryIsOneObject) {
  const TempDir dir;
  const RunResult r = run_binary(short_run(dir.path("run"), {"--json"}));
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const json j = json::parse(r.out);
  EXPECT_EQ(j["steps"], 3);
  EXPECT_EQ(j["planned_bytes"], j["used_bytes"]);
  EXPECT_GT(j["tokens_per_s"], 0);
}

struct Bad {
  std::vector<std::string> words;
  const char* message;
};

TEST(CliTrain, BadInputEndsWithTwoAndWritesNothing) {
  const std::vector<Bad> cases = {
      {{"model.vocab=100"}, "the embedded corpus has"},
      {{"data.embedded=false"}, "data.embedded"},
      {{"model.heads=3"}, "must divide"},
      {{"train.stepps=3"}, "train.steps"},
      {{"train.steps=many"}, "train.steps"},
      {{"train.precision=fp16"}, "mixed"},
      {{"train.micro_batch=3"}, "micro_batch"},
      {{"device.isa=neon"}, "avx2"},
      {{"nonsense"}, "nonsense"},
      {{"model.hidden=-128", "optim.lr=x"}, "optim.lr"},
  };
  for (const Bad& bad : cases) {
    const TempDir dir;
    const RunResult r = run_binary(short_run(dir.path("run"), bad.words));
    EXPECT_EQ(r.exit_code, 2) << bad.words[0];
    EXPECT_NE(r.err.find(bad.message), std::string::npos) << bad.words[0] << ": " << r.err;
    EXPECT_EQ(r.out, "") << bad.words[0];
    EXPECT_FALSE(fs::exists(dir.path("run"))) << bad.words[0];
  }
}

TEST(CliTrain, RefusesWhatDoesNotFitAndSaysWhatToChange) {
  const TempDir dir;
  const RunResult r = run_binary({"train", "--config", source_path("configs/hlat-70b.yaml"), "data.embedded=true", "train.global_batch=2",
                                  "parallel.tp=1", "parallel.pp=1", "parallel.dp=auto", "run.dir=" + dir.path("run")});
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_NE(r.err.find("does not fit on this machine"), std::string::npos) << r.err;
  EXPECT_NE(r.err.find("train.precision=bf16_sr"), std::string::npos) << r.err;
  EXPECT_NE(r.err.find("parallel.tp="), std::string::npos) << r.err;
  EXPECT_FALSE(fs::exists(dir.path("run")));
}

TEST(CliTrain, AFolderThatCannotBeMadeIsNamed) {
  const TempDir dir;
  const std::string file = dir.write("file", "x");
  const RunResult r = run_binary(short_run(file));
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_NE(r.err.find(file), std::string::npos) << r.err;
}

TEST(CliPlan, KnowsHlatModelsWithoutRunningThem) {
  const std::vector<std::string> one_rank = {"plan", "--config", source_path("configs/hlat-7b.yaml"), "parallel.tp=1", "--ranks",
                                             "1",    "--json"};
  const auto on = [&](const char* device) {
    std::vector<std::string> args = one_rank;
    args.insert(args.end(), {"--device", device});
    return run_binary(args);
  };
  const RunResult r = on("h200");
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const json j = json::parse(r.out);
  EXPECT_EQ(j["parameters"], 6738415616);
  // bf16 weights, gradients and two moments; padding and the RoPE table are the rest.
  EXPECT_NEAR(j["bytes"]["weight"].get<double>(), 2.0 * 6738415616, 4e6);
  EXPECT_NEAR(j["bytes"]["optimizer"].get<double>(), 4.0 * 6738415616, 4e6);
  EXPECT_EQ(j["largest"].size(), 10u);
  EXPECT_TRUE(j["fits"]);
  EXPECT_FALSE(json::parse(on("trn1").out)["fits"]);
}

TEST(CliPlan, PlansEveryStageOfALargeMesh) {
  const RunResult r = run_binary({"plan", "--config", source_path("configs/hlat-70b.yaml"), "--device", "trn1", "--json"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const json j = json::parse(r.out);
  EXPECT_EQ(j["ranks"], 8192);
  EXPECT_EQ(j["stages"].size(), 8u);
  // The first stage has the most micro-batches in flight.
  EXPECT_GT(j["stages"][0]["bytes"]["saved"], j["stages"][7]["bytes"]["saved"]);
  for (const char* axis : {"tp", "pp", "dp", "kv"}) EXPECT_GT(j["stages"][0]["bytes_sent_per_rank"][axis], 0) << axis;
  const RunResult one =
      run_binary({"plan", "--config", source_path("configs/hlat-70b.yaml"), "--device", "trn1", "--rank", "8191", "--json"});
  ASSERT_EQ(one.exit_code, 0) << one.err;
  EXPECT_EQ(json::parse(one.out)["stages"][0]["stage"], 7);
  EXPECT_EQ(run_binary({"plan", "--config", source_path("configs/hlat-70b.yaml"), "--rank", "8192"}).exit_code, 2);
  EXPECT_EQ(run_binary({"plan", "--config", source_path("configs/hlat-70b.yaml"), "--ranks", "100"}).exit_code, 2);
}

TEST(CliPlan, TableNamesRegionsAndAnswer) {
  const RunResult r = run_binary({"plan", "--config", nano_config()});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  for (const char* text :
       {"weight", "grad", "optimizer", "saved", "temp", "comm", "io", "largest entries", "per token", "fits on this machine"})
    EXPECT_NE(r.out.find(text), std::string::npos) << text << "\n" << r.out;
  EXPECT_EQ(run_binary({"plan", "--config", nano_config(), "--device", "abacus"}).exit_code, 2);
}

TEST(CliBench, ReportsTheStepForMachines) {
  const RunResult r = run_binary({"bench", "step", "--config", nano_config(), "--steps", "2", "--json", "device.threads=1"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const json j = json::parse(r.out);
  for (const char* key : {"tokens_per_s", "peak_flops", "planned_bytes", "used_bytes"}) EXPECT_GT(j[key], 0) << key;
  ASSERT_TRUE(j.contains("mfu"));
  if (!j["mfu"].is_null()) {
    EXPECT_TRUE(j["mfu"] > 0 && j["mfu"] <= 1) << j["mfu"];
  }
  EXPECT_EQ(j["planned_bytes"], j["used_bytes"]);
}

TEST(CliBench, SaveComparesStepsWithAndWithoutASaveAndLeavesNothing) {
  const TempDir dir;
  const RunResult r = run_binary({"bench", "save", "--config", nano_config(), "--saves", "2", "--steps", "1", "--dir", dir.path(), "--json",
                                  "device.threads=1", "train.global_batch=2", "train.micro_batch=2"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const json j = json::parse(r.out);
  EXPECT_EQ(j["saves"], 2);
  EXPECT_EQ(j["steps"], 1);
  EXPECT_EQ(j["bytes"], j["rank_bytes"]);
  for (const char* key : {"step_s", "save_s", "alone_s", "plain_s", "copy_s", "share_of_plain"}) EXPECT_GT(j[key].get<double>(), 0) << key;
  EXPECT_FALSE(j["limited_by"].get<std::string>().empty());
  EXPECT_TRUE(fs::is_empty(dir.path()));
}

TEST(CliBench, ListsEveryOpOfTheStep) {
  const RunResult r = run_binary({"bench", "ops", "--config", nano_config(), "--steps", "1", "device.threads=1"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  for (const char* op : {"matmul rate", "matmul 1024x", "attention_bwd", "swiglu", "adamw", "cross_entropy"})
    EXPECT_NE(r.out.find(op), std::string::npos) << op << "\n" << r.out;
}

TEST(CliBench, NamesAWordThatIsNoSubcommand) {
  const RunResult wrong = run_binary({"bench", "opps"}), none = run_binary({"bench"}), data = run_binary({"data"});
  for (const RunResult* r : {&wrong, &none, &data}) EXPECT_EQ(r->exit_code, 2) << r->err;
  EXPECT_NE(wrong.err.find("opps"), std::string::npos) << wrong.err;
  EXPECT_NE(none.err.find("hlat bench needs one of: data, step, ops"), std::string::npos) << none.err;
  EXPECT_NE(data.err.find("hlat data needs one of: inspect, sample, tokenize"), std::string::npos) << data.err;
}

// The OpenMP runtime itself says what it read when it was loaded.
TEST(CliTrain, ThreadsWaitWithABoundUnlessTheUserSaysHow) {
  const auto seen_by_runtime = [](const char* policy) {
    const char* given = std::getenv("OMP_WAIT_POLICY");
    const std::string before = given == nullptr ? "" : given;
    policy != nullptr ? setenv("OMP_WAIT_POLICY", policy, 1) : unsetenv("OMP_WAIT_POLICY");
    setenv("OMP_DISPLAY_ENV", "verbose", 1);
    const RunResult r = run_binary({"--version"});
    unsetenv("OMP_DISPLAY_ENV");
    given == nullptr ? unsetenv("OMP_WAIT_POLICY") : setenv("OMP_WAIT_POLICY", before.c_str(), 1);
    return r.err;
  };
  const std::string text = seen_by_runtime(nullptr);
  if (text.find("GOMP_SPINCOUNT") == std::string::npos) GTEST_SKIP() << "this OpenMP runtime is not libgomp";
  EXPECT_NE(text.find("GOMP_SPINCOUNT = '2000'"), std::string::npos) << text;
  EXPECT_EQ(seen_by_runtime("active").find("GOMP_SPINCOUNT = '2000'"), std::string::npos);
}

TEST(CliTrain, RecordsTheMicroBatchThatAutoChoseAndTheMemoryOfTheProcess) {
  const TempDir dir;
  const RunResult r = run_binary({"train", "--config", nano_config(), "train.micro_batch=auto", "train.steps=1", "optim.schedule_steps=600",
                                  "run.sample_lines=0", "run.dir=" + dir.path("run"), "--json"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const json j = json::parse(r.out);
  EXPECT_GT(j["resident_bytes"], j["used_bytes"]);
  EXPECT_TRUE(j.contains("device_bytes"));
  EXPECT_TRUE(j["mfu"].is_null()) << "of one step alone";
  EXPECT_NE(slurp(dir.path("run/config.yaml")).find("micro_batch: auto  # 16 in this run"), std::string::npos);
  EXPECT_NE(slurp(dir.path("run/log.txt")).find("train.micro_batch = auto is 16"), std::string::npos);
}

}  // namespace
}  // namespace hlat::test
