// A start-up that does not end: the phase and the rank that is missing are named, and the job ends as a transient fault.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "dist/job.h"

namespace hlat::test {
namespace {

// Rank 1 is a process that stops itself and never calls MPI_Init.
TEST(StartLimits, ARankThatNeverArrivesInMpiInitIsNamed) {
  Job job(1, tiny_run({"parallel.start_timeout_s=2", ":", "-n", "1", "sh", "-c", "kill -STOP $$"}));
  const RunResult r = job.wait();
  EXPECT_EQ(r.exit_code, 4) << r.err;
  EXPECT_NE(r.err.find("rank 0 of 2 on "), std::string::npos) << r.err;
  EXPECT_NE(r.err.find("start-up: joining the other ranks (MPI_Init) has not ended within 2 s"), std::string::npos) << r.err;
  EXPECT_NE(r.err.find("on this host rank 1 (process "), std::string::npos) << r.err;
  EXPECT_FALSE(std::filesystem::exists(job.dir().path("run")));
}

TEST(StartLimits, BeforeTheConfigIsKnownAVariableHolds) {
  const TempDir dir;
  ASSERT_EQ(mkfifo(dir.path("config.yaml").c_str(), 0600), 0);
  Job job(0, {"train", "--config", dir.path("config.yaml")}, {}, {{"HLAT_START_TIMEOUT_S", "1"}});
  const RunResult r = job.wait();
  EXPECT_EQ(r.exit_code, 4) << r.err;
  EXPECT_NE(r.err.find("start-up: reading the config has not ended within 1 s"), std::string::npos) << r.err;
}

// A job of two ranks whose rank 0 waits for its tokenizer, a pipe, until the test opens it: then both ranks have met.
class AtTheData : public testing::Test {
 protected:
  void start(const Job::Words& more) {
    ASSERT_EQ(run_binary({"data", "sample", "--documents", "50", "--out", data_.path("d")}).exit_code, 0);
    ASSERT_EQ(mkfifo(data_.path("tokenizer.json").c_str(), 0600), 0);
    const std::string data =
        "data: {tokenizer: " + data_.path("tokenizer.json") + ", sources: [{path: " + data_.path("d/stories.jsonl") + "}]}\n";
    const std::string config = data_.write("tiny.yaml",
                                           "model: {layers: 1, hidden: 32, heads: 2, ffn: 64, vocab: 2048}\n"
                                           "train: {steps: 3, seq_len: 32, global_batch: 4, micro_batch: 4}\n"
                                           "device: {backend: cpu, threads: 1}\n" +
                                               data);
    Job::Words words = {"train", "--config", config, "run.dir=run"};
    words.insert(words.end(), more.begin(), more.end());
    job_.emplace(2, words);
  }
  TempDir data_;
  std::optional<Job> job_;
};

TEST_F(AtTheData, TheScanOfRank0HasALimit) {
  start({"parallel.tp=2", "parallel.start_timeout_s=2"});
  const RunResult r = job_->wait();
  EXPECT_EQ(r.exit_code, 4) << r.err;
  EXPECT_NE(r.err.find("rank 0 of 2 on "), std::string::npos) << r.err;
  EXPECT_NE(r.err.find("opening the data: reading or making the document indices has not ended within 2 s"), std::string::npos) << r.err;
}

TEST_F(AtTheData, ARankThatStopsInALaterPhaseIsNamed) {
  start({"parallel.tp=2", "parallel.start_timeout_s=5"});
  const int pipe = open(data_.path("tokenizer.json").c_str(), O_WRONLY);  // comes back when rank 0 reads
  ASSERT_GE(pipe, 0);
  kill(job_->ranks().at(1), SIGSTOP);
  const std::string tokenizer = slurp(data_.path("d/tokenizer.json"));
  std::signal(SIGPIPE, SIG_IGN);
  for (size_t done = 0; done < tokenizer.size();) {
    const ssize_t n = write(pipe, tokenizer.data() + done, tokenizer.size() - done);
    ASSERT_GT(n, 0);
    done += static_cast<size_t>(n);
  }
  close(pipe);
  const RunResult r = job_->wait();
  EXPECT_EQ(r.exit_code, 4) << r.err;
  EXPECT_NE(r.err.find("rank 0 of 2 on "), std::string::npos) << r.err;
  EXPECT_NE(r.err.find(" has not ended within 5 s (parallel.start_timeout_s); rank 1 does not answer; on this host rank 1 (process "),
            std::string::npos)
      << r.err;
}

}  // namespace
}  // namespace hlat::test
