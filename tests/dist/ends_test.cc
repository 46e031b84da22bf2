// How a run ends: signals, with one process and with several, and samples that every layout writes after the summary.
#include <gtest/gtest.h>

#include <csignal>

#include "dist/job.h"

namespace hlat::test {
namespace {

Job::Words endless_without_saves(const Job::Words& more = {}) {
  Job::Words words = {"train.steps=1000000", "checkpoint.every=0", "checkpoint.at_end=false"};  // what saves: save_signals_test.cc
  words.insert(words.end(), more.begin(), more.end());
  return tiny_run(words);
}

TEST(Ends, AFirstSignalEndsTheRunAfterAStepAndIsRecorded) {
  for (const auto& [signal, name] : std::map<int, std::string>{{SIGINT, "SIGINT"}, {SIGTERM, "SIGTERM"}, {SIGHUP, "SIGHUP"}}) {
    Job job(0, endless_without_saves());
    job.await_step(2);
    kill(job.pid(), signal);
    const RunResult r = job.wait();
    EXPECT_EQ(r.exit_code, 128 + signal) << r.err;
    const int64_t last = job.metrics().back()["step"];
    const auto events = job.events();
    ASSERT_EQ(events.size(), 4u);
    EXPECT_EQ(events[1]["kind"], "ready");
    EXPECT_EQ(events[2]["kind"], "signal");
    EXPECT_EQ(events[3]["kind"], "end");
    EXPECT_EQ(events[3]["exit_code"], 128 + signal);
    EXPECT_EQ(events[3]["step"], last) << "a whole step, and recorded";
    EXPECT_NE(job.log().find(name + " ended it after step " + std::to_string(last)), std::string::npos) << job.log();
    EXPECT_NE(r.out.find("ended by     " + name), std::string::npos) << r.out;
    EXPECT_FALSE(std::filesystem::exists(job.dir().path("run/run.lock")));
  }
}

TEST(Ends, ASecondSignalEndsItAtOnce) {
  Job job(0, endless_without_saves());
  job.await_step(1);
  kill(job.pid(), SIGSTOP);  // both are there before it looks at the first
  kill(job.pid(), SIGTERM);
  kill(job.pid(), SIGINT);
  kill(job.pid(), SIGCONT);
  const RunResult r = job.wait();
  EXPECT_TRUE(r.exit_code == 128 + SIGTERM || r.exit_code == 128 + SIGINT) << r.err;
  EXPECT_NE(job.log().find("the second signal, at step "), std::string::npos) << job.log();
  EXPECT_EQ(r.out, "") << "no summary";
  EXPECT_FALSE(std::filesystem::exists(job.dir().path("run/run.lock")));
}

TEST(Ends, ASignalToOneRankEndsAllAfterTheSameStep) {
  Job job(4, endless_without_saves({"parallel.tp=2"}), {"--bind-to", "none"});
  job.await_step(2);
  kill(job.ranks().at(3), SIGTERM);
  const RunResult r = job.wait();
  EXPECT_EQ(r.exit_code, 128 + SIGTERM) << r.err;
  EXPECT_EQ(job.events().back()["exit_code"], 128 + SIGTERM);
  EXPECT_EQ(job.events().back()["step"], job.metrics().back()["step"]);
}

TEST(Ends, MpirunsOwnEndIsRecorded) {
  Job job(2, endless_without_saves(), {"--bind-to", "none"});
  job.await_step(2);
  kill(job.pid(), SIGTERM);
  job.wait();
  // Whichever comes first: rank 0 hears of it itself, or ends because another rank did.
  EXPECT_NE(job.log().find("SIGTERM"), std::string::npos) << job.log();
  EXPECT_NE(job.events().back()["kind"], "ready");
}

// The texts of a replica of several ranks are those of one process, and come after the summary.
TEST(Ends, EveryLayoutSamplesAfterTheSummary) {
  std::string alone;
  const std::vector<std::pair<int, Job::Words>> layouts = {
      {0, {}}, {2, {}}, {2, {"parallel.tp=2"}}, {2, {"parallel.pp=2"}}, {4, {"parallel.tp=2", "parallel.pp=2"}}};
  for (const auto& [ranks, layout] : layouts) {
    Job::Words words = {"run.sample_lines=2"};
    words.insert(words.end(), layout.begin(), layout.end());
    Job job(ranks, tiny_run(words), {"--bind-to", "none"});
    const RunResult r = job.wait();
    EXPECT_EQ(r.exit_code, 0) << r.err;
    const size_t at = r.out.find("the model writes:\n");
    ASSERT_NE(at, std::string::npos) << r.out;
    if (alone.empty()) alone = r.out.substr(at);
    EXPECT_EQ(r.out.substr(at), alone);
    const std::string log = job.log();
    EXPECT_LT(log.find("trained 5 steps"), log.find("documents, "));
    EXPECT_LT(log.find("documents, "), log.find("the model writes:"));
    EXPECT_NE(r.err.find("the run is finished; the model writes samples"), std::string::npos) << r.err;
  }
}

TEST(Ends, TheLogSaysWhatWasComparedAmongReplicas) {
  const Job::Words words = tiny_run({"parallel.health_every=1", "parallel.zero1=false", "train.steps=3"});
  Job job(2, words, {"--bind-to", "none"});
  const RunResult r = job.wait();
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_NE(job.log().find("equal on all 2 ranks with their peers; rank 0 compared gradients and weights of 27 tensors and the sums of "
                           "gradients over dp"),
            std::string::npos)
      << job.log();
}

}  // namespace
}  // namespace hlat::test
