// How a job starts: who prints, how many threads a rank takes, and launchers whose ranks cannot meet.
#include <gtest/gtest.h>
#include <sched.h>

#include <set>
#include <sstream>

#include "dist/job.h"
#include "support/paths.h"

namespace hlat::test {
namespace {

void expect_each_line_once(const std::string& text) {
  std::set<std::string> seen;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) EXPECT_TRUE(line.empty() || seen.insert(line).second) << line;
}

TEST(Start, OnlyRank0Prints) {
  const std::vector<Job::Words> commands = {
      tiny_run({"parallel.tp=2"}), {"plan", "--config", "tiny.yaml"}, {"train", "--help"}, {"--version"}};
  for (const Job::Words& words : commands) {
    Job job(4, words, {"--bind-to", "none"});
    const RunResult r = job.wait();
    EXPECT_EQ(r.exit_code, 0) << r.err;
    EXPECT_NE(r.out, "");
    expect_each_line_once(r.out);
    expect_each_line_once(r.err);
  }
}

// The number in "CPU, 2 threads: ...", with the cores shared by `ranks`.
int threads_of(int ranks, const char* binding) {
  Job job(ranks, tiny_run({"device.threads=auto"}), {"--bind-to", binding});
  const RunResult r = job.wait();
  EXPECT_EQ(r.exit_code, 0) << r.err;
  const size_t at = r.err.find("CPU, ");
  const bool advice = r.err.find("its option --bind-to none gives them all") != std::string::npos;
  cpu_set_t cores;
  sched_getaffinity(0, sizeof cores, &cores);
  EXPECT_EQ(advice, std::string(binding) == "core" && ranks < CPU_COUNT(&cores)) << r.err;
  return at == std::string::npos ? 0 : std::stoi(r.err.substr(at + 5));
}

TEST(Start, CoresAreDividedByTheRanksThatShareThem) {
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  const int cores = CPU_COUNT(&set);
  EXPECT_EQ(threads_of(1, "none"), cores);
  EXPECT_EQ(threads_of(2, "none"), std::max(1, cores / 2));
  if (cores < 2) GTEST_SKIP() << "one core: nothing to bind to";
  const int one = threads_of(1, "core");  // more than 1 where a core has two hardware threads
  EXPECT_LE(one, 2);
  EXPECT_EQ(threads_of(2, "core"), one);
}

TEST(Start, RanksMustHaveTheSameConfig) {
  Job::Words words = tiny_run({"optim.lr=1e-3", ":", "-n", "1", hlat_binary()});  // mpirun's way to start two kinds of ranks
  for (const std::string& word : tiny_run({"optim.lr=1e-4"})) words.push_back(word);
  Job job(1, words);
  const RunResult r = job.wait();
  EXPECT_EQ(r.exit_code, 2) << r.err;
  const size_t told = r.err.find("rank 1 has another config than rank 0");
  EXPECT_NE(told, std::string::npos) << r.err;
  EXPECT_EQ(r.err.find("another config", told + 30), std::string::npos) << r.err;
  EXPECT_FALSE(std::filesystem::exists(job.dir().path("run")));
}

TEST(Start, LaunchersWithoutMpiAreRefusedAtOnce) {
  const std::map<std::string, std::string> torchrun = {{"RANK", "0"}, {"WORLD_SIZE", "2"}}, other = {{"RANK", "1"}, {"WORLD_SIZE", "2"}},
                                           slurm = {{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}};
  for (const auto& variables : {torchrun, other, slurm}) {
    Job job(0, tiny_run(), {}, variables);
    const RunResult r = job.wait(5);
    EXPECT_EQ(r.exit_code, 2);
    EXPECT_NE(r.err.find("start them with "), std::string::npos) << r.err;
    EXPECT_FALSE(std::filesystem::exists(job.dir().path("run")));
  }
}

}  // namespace
}  // namespace hlat::test
