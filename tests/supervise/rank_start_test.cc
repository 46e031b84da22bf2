// The commands that start ranks, what their output says, what a check has found, and processes that are started.
#include "supervise/rank_start.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

#include "supervise/child.h"
#include "supervise/hosts_check.h"
#include "supervise/start_output.h"

namespace hlat {
namespace {

bool has_word(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

TEST(RankStart, SrunPlacesRanksByAFileWhereHostsTakeDifferentNumbers) {
  const std::vector<Host> hosts{{"n2", 3}, {"n1", 1}};
  EXPECT_EQ(srun_hostfile(hosts), "n2\nn2\nn2\nn1\n");
  RankCommand command{.train = {"hlat", "train"}, .hosts = hosts, .variables = {}};
  std::vector<std::string> words = start_words(command, Starter::srun, {}, false);
  for (const char* word : {"--distribution=arbitrary", "--nodes=2", "--ntasks=4", "--no-kill", "--mpi=pmix"})
    EXPECT_TRUE(has_word(words, word)) << word;
  EXPECT_FALSE(std::any_of(words.begin(), words.end(), [](const std::string& w) { return w.starts_with("--ntasks-per-node"); }));
  command.mpi_is_set = true;
  words = start_words(command, Starter::srun, {}, false);
  EXPECT_FALSE(has_word(words, "--mpi=pmix")) << "SLURM_MPI_TYPE says it";
}

TEST(StartOutput, TheLastWordsAreMpirunsReason) {
  const std::string rule(74, '-');
  EXPECT_EQ(last_words(""), "");
  EXPECT_EQ(last_words("a\nthe last line\n\n"), "the last line");
  EXPECT_EQ(last_words("ranks say this\n" + rule + "\nNot enough slots\nfor 4 ranks.\n" + rule + "\n"), "Not enough slots for 4 ranks.");
  EXPECT_EQ(last_words(rule + "\nfirst\n" + rule + "\n" + rule + "\nsecond\n" + rule + "\n"), "second");
  EXPECT_EQ(last_words(std::string(1000, 'x')).size(), 403u);
}

TEST(StartOutput, AFailureIsWhatHlatSaysFirst) {
  const std::string rule(76, '-');
  const std::string of_mpirun = rule + "\nMPI_ABORT was invoked\n" + rule + "\n";
  EXPECT_EQ(failure_words("check: init\nhlat: this is bad\n  and this\n" + of_mpirun + "hlat: a second rank\n"), "this is bad; and this");
  EXPECT_EQ(failure_words("hlat: it is bad"), "it is bad");
  EXPECT_EQ(failure_words("ranks say this\n" + of_mpirun), "MPI_ABORT was invoked");
  EXPECT_EQ(failure_words(""), "");
}

TEST(HostsCheck, RanksThatAreFoundBadNameTheirHosts) {
  const std::vector<Host> hosts{{"a", 2}, {"b", 2}};
  const char* report = R"({"well": false, "findings": [
    {"severity": "fault", "part": "matmul", "rank": 3, "host": "b.local", "words": "wrong: 1 of 8"},
    {"severity": "fault", "part": "memory", "rank": 2, "host": "b.local", "words": "a bit"},
    {"severity": "warning", "part": "gpu", "rank": 0, "host": "a.local", "words": "warm"}]})";
  const CheckResult found = read_check(std::string("some banner\n") + report + "\n", hosts);
  EXPECT_FALSE(found.passed);
  EXPECT_EQ(found.bad, std::vector<std::string>{"b"});
  EXPECT_EQ(found.words, "rank 3 on b: matmul wrong: 1 of 8; rank 2 on b: memory a bit");
  EXPECT_TRUE(read_check(R"({"well": true, "findings": []})", hosts).passed);
  for (const char* broken : {"", "rank 1 on b: matmul wrong", "{\"well\": 1}", "{\"well\": true}", "}{"}) {
    const CheckResult none = read_check(broken, hosts);
    EXPECT_FALSE(none.passed) << broken;
    EXPECT_TRUE(none.bad.empty()) << broken;
  }
}

TEST(HostsCheck, ReadsWhatTheCheckOfTheModelFound) {
  const CheckResult found = read_model_check(
      R"(a banner {"well": false, "checks": [{"name": "leak", "state": "ok", "words": "x"}, {"name": "data", "state": "failed", "words": "rows"}]})");
  EXPECT_FALSE(found.passed);
  EXPECT_EQ(found.words, "data: rows");
  EXPECT_TRUE(read_model_check(R"({"well": true, "checks": []})").passed);
  for (const char* broken : {"", "{}", "{", "}{"}) EXPECT_FALSE(read_model_check(broken).passed) << broken;
}

template <class Condition>
bool becomes(const Condition& condition) {
  for (int tries = 0; tries < 6000; ++tries) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

TEST(Child, OutputAndErrorsAreApart) {
  Child child({"sh", "-c", "echo out; echo err >&2; exit 5"}, {.take_errors = true, .take_output = true});
  std::string out, err;
  EXPECT_TRUE(becomes([&] {
    out += child.read_output(), err += child.read_errors();
    return !child.running() && !out.empty() && !err.empty();
  }));
  EXPECT_EQ(out, "out\n");
  EXPECT_EQ(err, "err\n");
  EXPECT_EQ(child.status(), 5);
}

// Its number is not given to another process before its group was ended.
TEST(Child, AProcessThatHasEndedIsKeptUntilItsGroupIsEnded) {
  Child child({"sh", "-c", "exit 3"}, {});
  ASSERT_TRUE(becomes([&] { return !child.running(); }));
  EXPECT_EQ(kill(child.pid(), 0), 0) << "it is still in the kernel's list";
  child.end();
  EXPECT_EQ(child.status(), 3);
  siginfo_t info{};
  EXPECT_NE(waitid(P_PID, static_cast<id_t>(child.pid()), &info, WEXITED | WNOHANG), 0) << "and now it is not";
}

TEST(Child, AProgramThatIsNotThereHasItsOwnCode) {
  Child child({"no-such-program-anywhere"}, {});
  ASSERT_TRUE(becomes([&] { return !child.running(); }));
  EXPECT_EQ(child.status(), 127);
}

}  // namespace
}  // namespace hlat
