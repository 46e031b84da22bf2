// hlat study with the real binary: a grid that runs, is killed in the middle, resumes, and ends as one that was never interrupted.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "support/paths.h"
#include "support/run_binary.h"
#include "support/temp_dir.h"

namespace hlat::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class StudyCli : public testing::Test {
 protected:
  // The shipped study, cut short.
  std::vector<std::string> args(const std::string& out, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"study", source_path("studies/nano.yaml"), "--out", dir_.path(out)};
    for (const char* key : {"train.steps=30", "train.global_batch=4", "train.micro_batch=4", "train.seq_len=32", "optim.warmup=2",
                            "checkpoint.every=5", "device.backend=cpu", "device.threads=1", "run.tensorboard=false"})
      words.insert(words.end(), {"--set", key});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  pid_t start(const std::vector<std::string>& words) const {
    std::vector<std::string> texts = words;
    texts.insert(texts.begin(), hlat_binary());
    std::vector<char*> list;
    for (std::string& t : texts) list.push_back(t.data());
    list.push_back(nullptr);
    const pid_t pid = fork();
    if (pid != 0) return pid;
    if (freopen("/dev/null", "w", stdout) == nullptr || freopen(dir_.path("err").c_str(), "w", stderr) == nullptr) _exit(126);
    execv(list[0], list.data());
    _exit(127);
  }

  static bool wait_for_lines(const fs::path& file, size_t lines) {
    for (int i = 0; i < 1200; ++i) {
      std::ifstream in(file);
      size_t count = 0;
      for (std::string line; std::getline(in, line);) ++count;
      if (count >= lines) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  }

  // What does not depend on the time that runs took.
  static json timeless(const std::string& text) {
    json j = json::parse(text);
    for (json& row : j["rows"])
      for (const char* key : {"tokens_per_s", "step_s", "comm_s", "comm_wait_s", "planned_bytes", "resident_bytes"})
        row["figures"].erase(key);
    return j["rows"];
  }

  TempDir dir_;
};

TEST_F(StudyCli, AStudyThatWasKilledGoesOnAndEndsAsOneThatWasNot) {
  const RunResult whole = run_binary(args("whole", {"--json", "--at-once", "2"}));
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  const json rows = json::parse(whole.out)["rows"];
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["name"], "fp32");
  EXPECT_EQ(rows[1]["ended"], 2);
  EXPECT_TRUE(rows[1]["gap_spreads"].is_number());
  EXPECT_GT(rows[0]["figures"]["final_loss"]["mean"], 1);
  EXPECT_GT(rows[0]["figures"]["planned_bytes"]["mean"], 1e6);
  for (const char* file : {"results.json", "results.md", "loss.svg", "grad_norm.svg"})
    EXPECT_TRUE(fs::exists(dir_.path("whole/") + file)) << file;

  // Killed without a chance to say anything, and then asked to end.
  int status = 0;
  pid_t study = start(args("parts"));
  ASSERT_TRUE(wait_for_lines(dir_.path("parts/fp32+seed=1/metrics.jsonl"), 8));
  kill(study, SIGKILL);
  waitpid(study, &status, 0);
  const auto still_runs = [&] { return run_binary(args("parts", {"--list"})).out.find("running") != std::string::npos; };
  for (int i = 0; i < 100 && still_runs(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  ASSERT_FALSE(still_runs()) << "a run ends with its study";
  study = start(args("parts"));
  ASSERT_TRUE(wait_for_lines(dir_.path("parts/bf16_sr+seed=1/metrics.jsonl"), 8)) << slurp(dir_.path("err"));
  kill(study, SIGINT);
  waitpid(study, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 130) << slurp(dir_.path("err"));
  EXPECT_NE(slurp(dir_.path("err")).find("resumes, step "), std::string::npos) << slurp(dir_.path("err"));
  const RunResult rest = run_binary(args("parts", {"--json"}));
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_EQ(rest.err.find("fp32+seed=1 "), std::string::npos) << "what was finished is not started again: " << rest.err;
  EXPECT_EQ(timeless(rest.out), timeless(whole.out));
}

TEST_F(StudyCli, ListsChoosesAndRefuses) {
  const RunResult list = run_binary(args("a", {"--list", "--only", "fp32", "--json"}));
  ASSERT_EQ(list.exit_code, 0) << list.err;
  const json runs = json::parse(list.out)["runs"];
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[1]["name"], "fp32+seed=2");
  EXPECT_EQ(runs[1]["state"], "waiting");
  EXPECT_EQ(runs[1]["steps"], 30);
  EXPECT_FALSE(fs::exists(dir_.path("a"))) << "nothing is started or written";

  const RunResult wrong = run_binary(args("a", {"--set", "optim.lrr=1", "--set", "run.seed=4"}));
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("run.seed is set by the axis run.seed"), std::string::npos) << wrong.err;
  EXPECT_NE(wrong.err.find("optim.lrr = 1: "), std::string::npos) << wrong.err;
  EXPECT_EQ(run_binary({"study", dir_.path("none.yaml")}).exit_code, 2);

  ASSERT_EQ(run_binary(args("a", {"--only", "fp32+seed=1"})).exit_code, 0);
  const std::string table = run_binary(args("a", {"--list"})).out;
  EXPECT_NE(table.find("fp32+seed=1     finished  30/30 "), std::string::npos) << table;
  EXPECT_NE(table.find("bf16_sr+seed=1  waiting    0/30 "), std::string::npos) << table;
  const RunResult other = run_binary(args("a", {"--only", "fp32+seed=1", "--set", "optim.lr=1e-3"}));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.err.find("of another config: optim.lr 0.004 -> 0.001"), std::string::npos) << other.err;
  const RunResult fresh = run_binary(args("a", {"--only", "fp32+seed=1", "--set", "optim.lr=1e-3", "--fresh"}));
  EXPECT_EQ(fresh.exit_code, 0) << fresh.err;
  EXPECT_TRUE(fs::exists(dir_.path("a/fp32+seed=1/previous_1/metrics.jsonl")));
  // What cannot be started anew leaves the old run, which is no result of this study.
  const RunResult failed = run_binary(args("a", {"--only", "fp32+seed=1", "--set", "data.tokenizer=none.json", "--set", "data.sources=[]",
                                                 "--set", "data.sources[0].path=none.txt", "--fresh", "--json"}));
  EXPECT_EQ(failed.exit_code, 2) << failed.err;
  EXPECT_NE(failed.err.find("fp32+seed=1 failed with exit code 2"), std::string::npos) << failed.err;
  EXPECT_EQ(json::parse(failed.out)["rows"][0]["ended"], 0) << failed.out;
}

TEST_F(StudyCli, RunsThatALimitLeavesAreNoFailure) {
  const RunResult end = run_binary(args("l", {"--limit", "0.001", "--only", "seed=1"}));
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_NE(end.err.find("left: the same command resumes the study"), std::string::npos) << end.err;
}

TEST_F(StudyCli, KeysAreGivenAsWordsOrWithSet) {
  const auto lengths = [&](const std::vector<std::string>& more) {
    const RunResult list = run_binary(args("w", more));
    EXPECT_EQ(list.exit_code, 0) << list.err;
    std::vector<int64_t> out;
    for (const json& run : json(json::parse(list.out)["runs"])) out.push_back(run["steps"]);
    return out;
  };
  EXPECT_EQ(lengths({"train.steps=7", "optim.lr=1e-3", "--only", "fp32", "--list", "--json"}), (std::vector<int64_t>{7, 7}));
  EXPECT_EQ(lengths({"--list", "--json", "--only", "fp32", "train.steps=8"}), (std::vector<int64_t>{8, 8}));
  const RunResult wrong = run_binary(args("w", {"--list", "optim.lrr=1", "other.yaml"}));
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("command line: optim.lrr = 1: "), std::string::npos) << wrong.err;
  EXPECT_NE(wrong.err.find("command line: other.yaml: must have the form section.key=value"), std::string::npos) << wrong.err;
}

TEST_F(StudyCli, DivergenceIsAResultAndOtherFailuresAreTold) {
  const std::string file = dir_.write("wild.yaml", "base: " + nano_config() + R"(
set: {train.steps: 20, train.global_batch: 4, train.micro_batch: 4, train.seq_len: 32, optim.warmup: 0, device.backend: cpu, device.threads: 1,
      run.sample_lines: 0, checkpoint.at_end: false, optim.clip: 0}
runs:
  - {name: wild, set: {optim.lr: 100}}
  - {name: lost, set: {data.tokenizer: none.json, 'data.sources[0].path': none.txt}}
  - {name: sound, set: {optim.lr: 1e-3}}
)");
  const RunResult end = run_binary({"study", file, "--out", dir_.path("wild"), "--json"});
  EXPECT_EQ(end.exit_code, 2) << "the one failure is of its input: " << end.err;
  const json rows = json::parse(end.out)["rows"];
  ASSERT_EQ(rows.size(), 3u);
  ASSERT_EQ(rows[0]["diverged"].size(), 1u) << end.out << end.err;
  EXPECT_LT(rows[0]["diverged"][0], 10);
  EXPECT_EQ(rows[1]["ended"], 0);
  EXPECT_EQ(rows[2]["ended"], 1) << "the study continues with the rest";
  EXPECT_NE(end.err.find("lost failed with exit code 2"), std::string::npos) << end.err;
  EXPECT_NE(end.err.find("none.json"), std::string::npos) << end.err;
  // Another failure, which may pass, beside it.
  fs::remove_all(dir_.path("wild/sound"));
  dir_.write("wild/sound", "a file in the place of its folder");
  EXPECT_EQ(run_binary({"study", file, "--out", dir_.path("wild")}).exit_code, 4);
  const RunResult table = run_binary({"study", file, "--out", dir_.path("wild"), "--table"});
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_NE(table.out.find("1 of 1 at"), std::string::npos) << table.out;
}

TEST_F(StudyCli, CtrlCDoesNotHideAFailureBeforeIt) {
  const std::string file = dir_.write("long.yaml", "base: " + nano_config() + R"(
set: {train.global_batch: 4, train.micro_batch: 4, train.seq_len: 32, device.backend: cpu, device.threads: 1, run.sample_lines: 0}
runs:
  - {name: lost, set: {data.tokenizer: none.json, 'data.sources[0].path': none.txt}}
  - {name: long, set: {train.steps: 1000000}}
)");
  const pid_t study = start({"study", file, "--out", dir_.path("long")});
  EXPECT_TRUE(wait_for_lines(dir_.path("long/long/metrics.jsonl"), 3)) << slurp(dir_.path("err"));
  kill(study, SIGINT);
  int status = 0;
  waitpid(study, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 2) << slurp(dir_.path("err"));
  EXPECT_NE(slurp(dir_.path("err")).find("0 runs finished, 1 failed, 1 left"), std::string::npos) << slurp(dir_.path("err"));
}

TEST_F(StudyCli, ARunThatCannotBeStartedLeavesTheOthersAlone) {
  fs::create_directories(dir_.path("one"));
  dir_.write("one/bf16_sr+seed=1", "a file in the place of its folder");
  const RunResult end = run_binary(args("one", {"--at-once", "2", "--only", "seed=1", "--json"}));
  EXPECT_EQ(end.exit_code, 4) << end.err;
  EXPECT_NE(end.err.find("bf16_sr+seed=1 cannot be started: "), std::string::npos) << end.err;
  EXPECT_NE(end.err.find("bf16_sr+seed=1 is left out: "), std::string::npos) << end.err;
  EXPECT_NE(end.err.find("1 run finished, 1 failed"), std::string::npos) << end.err;
  const RunResult list = run_binary(args("one", {"--list"}));
  EXPECT_EQ(list.exit_code, 0) << list.err;
  EXPECT_NE(list.out.find("unreadable: " + dir_.path("one/bf16_sr+seed=1") + " is no folder"), std::string::npos) << list.out;
  EXPECT_EQ(json::parse(end.out)["rows"][0]["ended"], 1);
  EXPECT_TRUE(fs::exists(dir_.path("one/results.md")));
}

TEST_F(StudyCli, ATableOfSomeRunsLeavesTheFilesWhole) {
  ASSERT_EQ(run_binary(args("t", {"--only", "seed=1"})).exit_code, 0);
  const std::string whole = slurp(dir_.path("t/results.json")), curves = slurp(dir_.path("t/loss.svg"));
  const RunResult part = run_binary(args("t", {"--table", "--only", "fp32", "--json"}));
  ASSERT_EQ(part.exit_code, 0) << part.err;
  EXPECT_EQ(json::parse(part.out)["rows"].size(), 1u);
  EXPECT_EQ(json::parse(whole)["rows"].size(), 2u);
  const RunResult other = run_binary(args("t", {"--table", "--only", "bf16_sr", "--json"}));
  EXPECT_EQ(json::parse(other.out)["rows"][0], json::parse(whole)["rows"][1]) << "with the baseline that it leaves out";
  EXPECT_EQ(slurp(dir_.path("t/results.json")), whole);
  EXPECT_EQ(slurp(dir_.path("t/loss.svg")), curves);
  for (const auto& [out, words] :
       {std::pair("tt", "did you mean " + dir_.path("t") + "?"), {"none/t", "there is no folder " + dir_.path("none")}}) {
    const RunResult wrong = run_binary(args(out, {"--table"}));
    EXPECT_EQ(wrong.exit_code, 2);
    EXPECT_NE(wrong.err.find("there is no folder " + dir_.path(out)), std::string::npos) << wrong.err;
    EXPECT_NE(wrong.err.find(words), std::string::npos) << wrong.err;
    EXPECT_FALSE(fs::exists(dir_.path(out)));
  }
}

TEST_F(StudyCli, AReportOfItsRunsStandsBesideTheTable) {
  const std::string page = dir_.path("r/report.html");
  const RunResult end = run_binary(args("r", {"--only", "seed=1"}));
  ASSERT_EQ(end.exit_code, 0) << end.err;
  if (end.err.find("built without uPlot") != std::string::npos) GTEST_SKIP() << "built without uPlot";
  EXPECT_NE(end.err.find("grad_norm.svg and report.html are in " + dir_.path("r")), std::string::npos) << end.err;
  const std::string html = slurp(page);
  const size_t begin = html.find("id=\"data\">") + 10;
  const json data = json::parse(html.substr(begin, html.find("</script>", begin) - begin)), runs = data["runs"];
  EXPECT_EQ(data["results"][0][0], "point");
  EXPECT_EQ(data["results"][2][0], "bf16_sr") << "the rows of the table";
  ASSERT_EQ(data["result_values"].size(), 2u);
  for (const json& values : data["result_values"]) EXPECT_EQ(values.size(), data["results"][0].size());
  EXPECT_EQ(data["result_values"][1][1], 1) << "runs that have ended";
  EXPECT_EQ(runs[1]["group"], "bf16_sr");
  ASSERT_EQ(runs.size(), 2u) << "those that were not started are left out";
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(runs[i]["row"]["name"], i == 0 ? "fp32+seed=1" : "bf16_sr+seed=1");
    EXPECT_EQ(runs[i]["curves"]["loss"][0].size(), 30u);
  }
  // A table of some runs leaves all of them in the report; what is no report is left alone, and the table is there all the same.
  const RunResult table = run_binary(args("r", {"--table", "--only", "fp32"}));
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_NE(slurp(page).find("bf16_sr+seed=1"), std::string::npos);
  dir_.write("r/report.html", "mine");
  const RunResult again = run_binary(args("r", {"--table"}));
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_NE(again.err.find("report.html is left out: "), std::string::npos) << again.err;
  EXPECT_NE(again.err.find("loss.svg and grad_norm.svg are in"), std::string::npos) << again.err;
  EXPECT_EQ(slurp(page), "mine");
}

// It may be the folder of another one, whose table would be gone.
TEST_F(StudyCli, AStudyOfWhichNothingRanHasNoTable) {
  fs::create_directories(dir_.path("n"));
  std::ofstream(dir_.path("n/results.md")) << "of another study";
  const RunResult table = run_binary(args("n", {"--table"}));
  EXPECT_EQ(table.exit_code, 2);
  EXPECT_NE(table.err.find("none of the runs of nano has begun in "), std::string::npos) << table.err;
  EXPECT_EQ(slurp(dir_.path("n/results.md")), "of another study");
  EXPECT_FALSE(fs::exists(dir_.path("n/report.html")));
}

TEST_F(StudyCli, AStudyOfWhichEveryRunFailsHasNoReport) {
  const std::string file =
      dir_.write("lost.yaml", "base: " + nano_config() +
                                  "\nset: {data.tokenizer: none.json, 'data.sources[0].path': none.txt}\naxes: {run.seed: [1, 2]}\n");
  const RunResult end = run_binary({"study", file, "--out", dir_.path("lost")});
  EXPECT_EQ(end.exit_code, 2) << end.err;
  EXPECT_NE(end.err.find("report.html is left out: no run has a step yet"), std::string::npos) << end.err;
  EXPECT_FALSE(fs::exists(dir_.path("lost/report.html")));
}

// As one that was killed while it wrote samples: hlat train does what is left, trains no step again, and records the end.
TEST_F(StudyCli, ARunThatWasKilledBehindItsLastSaveIsFinished) {
  const std::vector<std::string> words = args("k", {"--only", "fp32+seed=1", "--json"});
  const RunResult first = run_binary(words);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const fs::path folder = dir_.path("k/fp32+seed=1");
  const std::string metrics = slurp((folder / "metrics.jsonl").string());
  std::istringstream events(slurp((folder / "events.jsonl").string()));
  std::string kept;
  for (std::string line; std::getline(events, line);)
    if (json::parse(line)["kind"] != "end") kept += line + "\n";
  std::ofstream(folder / "events.jsonl", std::ios::trunc) << kept;
  const RunResult again = run_binary(words);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_NE(again.err.find("fp32+seed=1 resumes, step 30 was recorded"), std::string::npos) << again.err;
  EXPECT_NE(again.err.find("fp32+seed=1 finished"), std::string::npos) << again.err;
  EXPECT_EQ(json::parse(again.out)["rows"][0]["figures"]["final_loss"], json::parse(first.out)["rows"][0]["figures"]["final_loss"]);
  EXPECT_EQ(slurp((folder / "metrics.jsonl").string()), metrics);
  const RunResult third = run_binary(words);
  EXPECT_EQ(third.err.find("resumes"), std::string::npos) << third.err;
}

// As a new start leaves it that is killed before it has told that it begins.
TEST_F(StudyCli, ARunThatWasBeingSetAsideIsRunAgain) {
  const std::vector<std::string> words = args("k", {"--only", "fp32+seed=1", "--json"});
  const RunResult first = run_binary(words);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const fs::path folder = dir_.path("k/fp32+seed=1"), aside = folder / "previous_1";
  fs::create_directories(aside);
  for (const char* name : {"checkpoints", "metrics.jsonl"}) fs::rename(folder / name, aside / name);
  const RunResult again = run_binary(words);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_NE(again.err.find("fp32+seed=1 starts"), std::string::npos) << again.err;
  EXPECT_NE(again.err.find("fp32+seed=1 finished"), std::string::npos) << again.err;
  EXPECT_EQ(timeless(again.out), timeless(first.out));
}

TEST_F(StudyCli, TheReportLeavesOutWhatTheTableLeavesOut) {
  ASSERT_EQ(run_binary(args("o", {"--only", "seed=1"})).exit_code, 0);
  fs::remove(dir_.path("o/fp32+seed=1/metrics.jsonl"));
  fs::create_directories(dir_.path("o/fp32+seed=1/metrics.jsonl"));
  const RunResult table = run_binary(args("o", {"--table"}));
  if (table.err.find("built without uPlot") != std::string::npos) GTEST_SKIP() << "built without uPlot";
  EXPECT_NE(table.err.find("fp32+seed=1 is left out: "), std::string::npos) << table.err;
  EXPECT_NE(table.err.find("grad_norm.svg and report.html are in"), std::string::npos) << table.err;
  const std::string page = slurp(dir_.path("o/report.html"));
  EXPECT_NE(page.find("bf16_sr+seed=1"), std::string::npos);
  EXPECT_EQ(page.find("fp32+seed=1"), std::string::npos);
}

TEST_F(StudyCli, ATableOfRunsOfAnotherConfigAloneIsRefusedAndWritesNothing) {
  ASSERT_EQ(run_binary(args("o", {"--only", "seed=1"})).exit_code, 0);
  const std::vector<std::string> files = {"results.json", "results.md", "loss.svg", "grad_norm.svg"};
  std::vector<std::string> before;
  for (const std::string& file : files) before.push_back(slurp(dir_.path("o/" + file)));
  const RunResult other = run_binary(args("o", {"--table", "--set", "optim.beta2=0.9"}));
  EXPECT_EQ(other.exit_code, 2) << other.err;
  EXPECT_NE(other.err.find("--table: nano has 2 runs, but with another config than asked for (optim.beta2 0.95 -> 0.9)"), std::string::npos)
      << other.err;
  EXPECT_EQ(other.out, "");
  for (size_t i = 0; i < files.size(); ++i) EXPECT_EQ(slurp(dir_.path("o/" + files[i])), before[i]) << files[i];
}

TEST_F(StudyCli, AMissingMpirunIsNamed) {
  const std::string path = std::getenv("PATH");
  setenv("PATH", dir_.path().c_str(), 1);
  const RunResult end = run_binary(args("m", {"--set", "parallel.tp=2", "--only", "fp32+seed=1"}));
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(end.exit_code, 2) << end.err;
  EXPECT_NE(end.err.find("fp32+seed=1 cannot be started: mpirun was not found"), std::string::npos) << end.err;
  EXPECT_NE(end.err.find("launch.starter = auto"), std::string::npos) << end.err;
}

// mpirun waits twice checkpoint.grace_s, here two minutes, for ranks that are gone.
TEST_F(StudyCli, RanksThatDivergeAreNotWaitedFor) {
  if (system("command -v mpirun >/dev/null") != 0) GTEST_SKIP() << "no mpirun";
  const auto begin = std::chrono::steady_clock::now();
  const RunResult end = run_binary(args("wild", {"--set", "parallel.dp=2", "--set", "train.micro_batch=2", "--set", "optim.lr=100", "--set",
                                                 "optim.clip=0", "--set", "optim.warmup=0", "--only", "fp32+seed=1", "--json"}));
  const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(json::parse(end.out)["rows"][0]["diverged"].size(), 1u) << end.out << end.err;
  EXPECT_NE(end.err.find("1 with a numerical failure (exit code 5)"), std::string::npos) << end.err;
  EXPECT_LT(took, 100) << end.err;
}

TEST_F(StudyCli, RunsOfSeveralRanksAreStartedByMpirun) {
  if (run_binary({"config", "--keys"}).exit_code != 0 || system("command -v mpirun >/dev/null") != 0) GTEST_SKIP() << "no mpirun";
  const RunResult end = run_binary(args("two", {"--set", "parallel.tp=2", "--set", "train.steps=4", "--only", "fp32+seed=1", "--json"}));
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_NE(end.err.find("fp32+seed=1 starts on 2 ranks"), std::string::npos) << end.err;
  const json rows = json::parse(end.out)["rows"];
  EXPECT_EQ(rows[0]["ended"], 1);
  EXPECT_GT(rows[0]["figures"]["comm_s"]["mean"], 0);
}

}  // namespace
}  // namespace hlat::test
