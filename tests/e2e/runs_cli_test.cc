// hlat runs over folders of real runs: one that finished, one that was ended and started again, and folders that are none.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/paths.h"
#include "support/run_binary.h"
#include "support/temp_dir.h"

namespace hlat::test {
namespace {

using nlohmann::json;

class Runs : public testing::Test {
 protected:
  RunResult train(const std::string& run, const std::vector<std::string>& more) const {
    std::vector<std::string> args = {"train",
                                     "--config",
                                     nano_config(),
                                     "run.dir=" + dir_.path(run),
                                     "run.sample_lines=0",
                                     "device.backend=cpu",
                                     "train.global_batch=2",
                                     "train.micro_batch=2",
                                     "train.seq_len=32"};
    args.insert(args.end(), more.begin(), more.end());
    return run_binary(args);
  }
  static double sum(const json& time) {
    double all = time["useful_s"];
    for (const auto& [cause, seconds] : time["lost_s"].items()) all += seconds.get<double>();
    return all;
  }
  TempDir dir_;
};

TEST_F(Runs, ARunOfThreeStartsIsListedAndShown) {
  ASSERT_EQ(train("runs/one", {"train.steps=4", "optim.schedule_steps=10", "optim.warmup=2", "checkpoint.every=2"}).exit_code, 0);
  // The next goes back behind the second step: two steps are done again.
  const RunResult again = train("runs/one", {"train.steps=6", "optim.schedule_steps=10", "optim.warmup=2", "checkpoint.every=2",
                                             "checkpoint.resume_from=2", "--json"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  const json summary = json::parse(again.out);
  EXPECT_EQ(summary["goodput"]["restarts"], 1);
  EXPECT_EQ(summary["goodput"]["steps_repeated"], 2);
  EXPECT_NE(again.err.find("goodput "), std::string::npos) << again.err;
  ASSERT_EQ(train("runs/two", {"train.steps=2", "optim.warmup=1"}).exit_code, 0);

  const RunResult list = run_binary({"runs", "ls", "--json"}, dir_.path());
  ASSERT_EQ(list.exit_code, 0) << list.err;
  const json runs = json::parse(list.out)["runs"];
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0]["folder"], "runs/one");
  EXPECT_EQ(runs[0]["state"], "finished");
  EXPECT_EQ(runs[0]["step"], 6);
  EXPECT_EQ(runs[0]["steps"], 6);
  EXPECT_EQ(runs[0]["time"]["restarts"], 1);
  EXPECT_EQ(runs[0]["time"]["steps_repeated"], 2);
  EXPECT_EQ(runs[0]["time"]["steps_kept"], 6);
  EXPECT_EQ(runs[1]["time"]["restarts"], 0);
  for (const json& run : runs) {
    EXPECT_NEAR(sum(run["time"]), run["time"]["wall_s"].get<double>(), 1e-3);
    EXPECT_GT(run["time"]["useful_s"], 0);
    EXPECT_GT(run["time"]["lost_s"]["start"], 0);
    EXPECT_GT(run["time"]["lost_s"]["load"], 0);
    EXPECT_EQ(run["time"]["lost_s"]["unknown"], 0);
  }
  const RunResult table = run_binary({"runs", "ls", dir_.path("runs/two"), dir_.path("runs/one")});
  EXPECT_EQ(table.exit_code, 0);
  EXPECT_NE(table.out.find("finished"), std::string::npos) << table.out;
  EXPECT_LT(table.out.find("runs/two"), table.out.find("runs/one")) << "in the order given";

  const json shown = json::parse(run_binary({"runs", "show", dir_.path("runs/one"), "--json"}).out);
  ASSERT_EQ(shown["attempts"].size(), 2u);
  EXPECT_EQ(shown["attempts"][0]["reached"], 4);
  EXPECT_EQ(shown["attempts"][0]["kept"], 2);
  EXPECT_EQ(shown["attempts"][1]["from"], 2);
  EXPECT_EQ(shown["attempts"][1]["exit_code"], 0);
  const RunResult text = run_binary({"runs", "show", dir_.path("runs/one")});
  for (const char* words : {"goodput ", "1 restart", "lost: repeated steps", "1 to 4", "3 to 6", "start: started again"})
    EXPECT_NE(text.out.find(words), std::string::npos) << words << "\n" << text.out;
  // Metrics of a run that was never restarted have no goodput; those of the second start do.
  std::ifstream metrics(dir_.path("runs/one/metrics.jsonl"));
  for (std::string line; std::getline(metrics, line);)
    EXPECT_EQ(json::parse(line).contains("goodput"), json::parse(line)["step"] > 2) << line;
}

TEST_F(Runs, WrongInputsAreNamed) {
  const auto expect = [&](const std::vector<std::string>& args, const std::string& words) {
    const RunResult r = run_binary(args, dir_.path());
    EXPECT_EQ(r.exit_code, 2) << words;
    EXPECT_NE(r.err.find(words), std::string::npos) << r.err;
  };
  expect({"runs"}, "needs one of: ls, show");
  expect({"runs", "ls"}, "there is no folder runs");
  dir_.write("file", "");
  expect({"runs", "ls", "file"}, "file is a file, not a folder");
  std::filesystem::create_directories(dir_.path("none"));
  expect({"runs", "show", "none"}, "none is no run folder");
  expect({"runs", "show", "nowhere"}, "there is no folder nowhere");
  expect({"runs", "show"}, "run is required");
  const RunResult empty = run_binary({"runs", "ls", "none"}, dir_.path());
  EXPECT_EQ(empty.exit_code, 0);
  EXPECT_EQ(empty.out, "no run folders\n");
  std::filesystem::create_directories(dir_.path("bad"));
  dir_.write("bad/events.jsonl", "{\"time\":\"2026-01-02T03:04:05.500Z\",\"kind\":\"start\"}\nnonsense\n");
  expect({"runs", "ls", "bad"}, "bad/events.jsonl is damaged: line 2 is no JSON object");
  expect({"runs", "show", "bad"}, "bad/events.jsonl is damaged: line 2 is no JSON object");
  EXPECT_NE(run_binary({"runs", "ls", "bad"}, dir_.path()).out.find("failed"), std::string::npos) << "what can be read is shown";
}

}  // namespace
}  // namespace hlat::test
