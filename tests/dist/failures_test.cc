// Ranks that die, stop or cannot write: the whole job ends soon, says why, and leaves nothing behind.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "dist/job.h"

namespace hlat::test {
namespace {

constexpr double kSoon = 10;  // seconds

Job::Words endless(const Job::Words& more = {}) {
  Job::Words words = {"train.steps=1000000"};
  words.insert(words.end(), more.begin(), more.end());
  return tiny_run(words);
}

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(Failures, AKilledRankEndsTheJob) {
  Job job(4, endless({"parallel.tp=2"}));
  job.await_step(1);
  const auto ranks = job.ranks();
  ASSERT_EQ(ranks.size(), 4u);
  kill(ranks.at(2), SIGKILL);
  const RunResult r = job.wait(kSoon);
  EXPECT_NE(r.exit_code, 0);
  EXPECT_NE(r.err.find("rank 2"), std::string::npos) << r.err;
  EXPECT_NE(r.err.find("signal 9"), std::string::npos) << r.err;
  EXPECT_TRUE(job.ranks().empty());
}

// The survivor that records it: rank 0, or another when rank 0 itself is gone.
TEST(Failures, AKilledRankIsNamedInTheRunFolder) {
  for (const int victim : {1, 0}) {
    Job job(2, endless());
    job.await_step(1);
    kill(job.ranks().at(victim), SIGKILL);
    const RunResult r = job.wait(kSoon);
    EXPECT_EQ(r.exit_code, 128 + SIGKILL);
    const auto events = job.events();
    ASSERT_EQ(events.size(), 4u) << r.err;
    EXPECT_EQ(events[1]["kind"], "ready");
    EXPECT_EQ(events[2]["kind"], "fault");
    EXPECT_EQ(events[2]["missing"], nlohmann::json({victim}));
    EXPECT_EQ(events[2]["rank"], 1 - victim);
    EXPECT_GE(events[2]["step"], 1);
    EXPECT_EQ(events[3]["kind"], "end");
    EXPECT_NE(job.log().find("rank " + std::to_string(victim) + " is gone"), std::string::npos) << job.log();
  }
}

TEST(Failures, AStoppedRankIsNamedAfterTheTimeLimit) {
  Job job(4, endless({"parallel.tp=2", "parallel.timeout_s=3"}));
  job.await_step(1);
  kill(job.ranks().at(3), SIGSTOP);
  const RunResult r = job.wait(3 + kSoon);
  EXPECT_EQ(r.exit_code, 4) << r.err;
  EXPECT_NE(job.log().find("on this host rank 3 (process "), std::string::npos) << job.log();
  // Ranks 2 and 3 are a tp group, 1 and 3 a dp group; which of them waits first depends on where rank 3 was.
  EXPECT_NE(r.err.find("waited 3 s for rank 1, rank 3 of the job"), std::string::npos) << r.err;
  const bool by_tp = r.err.find("hlat: rank 2 of 4 on ") != std::string::npos && r.err.find(": tp ") != std::string::npos;
  const bool by_dp = r.err.find("hlat: rank 1 of 4 on ") != std::string::npos && r.err.find(": dp ") != std::string::npos;
  EXPECT_TRUE(by_tp || by_dp) << r.err;
  EXPECT_TRUE(job.ranks().empty());
}

TEST(Failures, ARankThatCannotWriteSaysSo) {
  Job job(4, endless({"parallel.pp=2"}));
  job.await_step(1);
  const rlimit limit{.rlim_cur = 8000, .rlim_max = 8000};  // bytes of a file: some lines of metrics, more than the log
  ASSERT_EQ(prlimit(job.ranks().at(0), RLIMIT_FSIZE, &limit, nullptr), 0);
  const RunResult r = job.wait(kSoon);
  EXPECT_EQ(r.exit_code, 4) << r.err;
  const std::string written = slurp(job.dir().path("run/metrics.jsonl"));
  EXPECT_TRUE(written.ends_with("}\n")) << written.substr(written.rfind('\n', written.size() - 2) + 1);
  EXPECT_EQ(job.events().back()["exit_code"], 4);
  EXPECT_EQ(job.events().back()["step"], job.metrics().back()["step"].get<int64_t>() + 1);
  EXPECT_NE(job.log().find("run/metrics.jsonl: File too large; it ends with its last whole record"), std::string::npos) << job.log();
  EXPECT_EQ(count(r.err, "hlat: rank 0 of 4 on "), 1u) << r.err;
  EXPECT_NE(r.err.find(", step "), std::string::npos) << r.err;
  EXPECT_NE(r.err.find("run/metrics.jsonl: File too large"), std::string::npos) << r.err;
  EXPECT_TRUE(job.ranks().empty());
}

TEST(Failures, ARunFolderThatCannotBeMadeIsToldOnce) {
  Job job(2, tiny_run({"run.dir=tiny.yaml"}));
  const RunResult r = job.wait();
  EXPECT_EQ(r.exit_code, 2) << r.err;
  EXPECT_EQ(count(r.err, "run.dir tiny.yaml is a file, not a folder"), 1u) << r.err;
}

struct Bad {
  int ranks;
  Job::Words words;
  std::string message;
};

TEST(Failures, BadInputIsToldOnce) {
  const std::vector<Bad> cases = {
      {4, {"train.stepps=3"}, "train.stepps = 3: unknown key; did you mean train.steps?"},
      {4, {"parallel.tp=3"}, "is 3 ranks for each replica, but 4 were started; start a multiple of 3 ranks"},
      {2, {"parallel.dp=4"}, "is 4 ranks, but 2 were started; set parallel.dp=auto"},
      {3, {}, "parallel.dp = 3 (auto, of 3 ranks): x train.micro_batch (1) is 3 sequences and must divide train.global_batch (8)"},
      {2, {"parallel.pp=2", "parallel.chunks=4"}, "is 8 pieces, more than model.layers (4)"},
      {2, {"--frob"}, "--frob"},
      {2, {"device.isa=neon"}, "device.isa"},
      {2, {"model.vocab=100"}, "the embedded corpus has"},
  };
  for (const Bad& bad : cases) {
    Job job(bad.ranks, tiny_run(bad.words));
    const RunResult r = job.wait();
    EXPECT_EQ(r.exit_code, 2) << bad.message;
    EXPECT_EQ(count(r.err, bad.message), 1u) << r.err;
    EXPECT_EQ(r.out, "");
    EXPECT_FALSE(std::filesystem::exists(job.dir().path("run"))) << bad.message;
  }
}

}  // namespace
}  // namespace hlat::test
