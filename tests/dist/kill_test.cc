// Runs that are killed at random instants (in a step, while state is staged, written, committed, removed or loaded), started again with the
// same command, maybe killed again, until they finish. What they end with is what the uninterrupted run ends with, bit by bit, and only
// steps after the last commit are done twice. HLAT_KILLS=100 kills so often in all, three in five of them runs of one process.
#include <gtest/gtest.h>

#include <csignal>
#include <random>
#include <thread>

#include "dist/saving_run.h"

namespace hlat::test {
namespace {

constexpr int64_t kWholeSteps = 14;

int kills_of(int share_of_five, int otherwise) {
  const char* all = std::getenv("HLAT_KILLS");
  return all == nullptr ? otherwise : std::atoi(all) * share_of_five / 5;
}

struct Instant {
  std::string name;
  std::optional<IoFault> fault = {};  // none: at a random time
  int signal = SIGKILL;
  bool from_start = false;  // the time begins with the process, not with its first step
  bool one_rank = false;    // of several
};

class Killing {
 public:
  Killing(int ranks, const Job::Words& layout, uint64_t seed) : ranks_(ranks), words_(layout), random_(seed) {
    for (const char* word : {"checkpoint.every=2", "checkpoint.keep=2", "train.global_batch=16"}) words_.emplace_back(word);
    words_.push_back("train.steps=" + std::to_string(kWholeSteps));
    const SavingRun whole(ranks_, words_);
    const RunResult r = whole.run();
    if (r.exit_code != 0) throw std::runtime_error("the uninterrupted run failed: " + r.err);
    content_ = whole.content(kWholeSteps);
    losses_ = whole.losses();
    run_s_ = nlohmann::json::parse(r.out)["seconds"];
  }

  void kill_times(int wanted) {
    while (kills_ < wanted && !testing::Test::HasFailure()) run_in_parts(wanted);
    for (const auto& [name, count] : tally_) std::cout << "killed " << count << " times: " << name << "\n";
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }

  // Calls are counted in the process, so their numbers are small where a save is to be met for sure.
  Instant instant(bool loads) {
    const int rank = ranks_ == 0 ? -1 : below(ranks_), first = ranks_ == 0 ? -1 : 0;
    const std::vector<Instant> all = {
        {.name = "SIGKILL during the steps"},
        {.name = "in a write, half of it done", .fault = IoFault{.action = "tear", .call = "write", .at = 1 + below(6), .rank = rank}},
        {.name = "SIGTERM during the steps", .signal = SIGTERM},
        {.name = "before a rename", .fault = IoFault{.action = "kill", .call = "rename", .at = 1 + below(3), .rank = first}},
        {.name = "while the state is staged", .fault = IoFault{.action = "kill_after", .call = "mkdir", .at = 1 + below(3), .rank = first}},
        {.name = "in a load", .fault = IoFault{.action = "kill", .call = "read", .at = 1 + below(8), .rank = loads ? rank : first}},
        {.name = "before an fsync", .fault = IoFault{.action = "kill", .call = "fsync", .at = 1 + below(6), .rank = rank}},
        {.name = "after a rename", .fault = IoFault{.action = "kill_after", .call = "rename", .at = 1 + below(3), .rank = first}},
        {.name = "SIGKILL of one rank", .one_rank = true},
        {.name = "while old ones are removed", .fault = IoFault{.action = "kill", .call = "unlink", .at = 1 + below(4), .rank = first}},
        {.name = "SIGKILL at any time from the start", .from_start = true},
        {.name = "SIGTERM of one rank", .signal = SIGTERM, .one_rank = true}};
    Instant chosen = all[static_cast<size_t>(turn_++) % all.size()];
    return chosen.name == "in a load" && !loads ? all[0] : chosen;
  }

  // Sends the signal; false: it ended before.
  bool strike(const SavingRun& run, const Job& job, const Instant& at, int64_t after) {
    const double whole = run_s_ * static_cast<double>(kWholeSteps - after) / kWholeSteps;
    const bool running =
        at.from_start || within(120, [&] {
          const auto lines = run.metrics();
          return (!lines.empty() && lines.back()["step"] > after) || kill(job.pid(), 0) != 0 || run.latest() == kWholeSteps;
        });
    if (!running) return false;
    std::this_thread::sleep_for(std::chrono::duration<double>(whole * below(1000) / 1000.0));
    if (ranks_ == 0) return kill(job.pid(), at.signal) == 0;
    const auto living = job.ranks();
    if (living.empty()) return false;
    if (at.one_rank) return kill(std::next(living.begin(), below(static_cast<int>(living.size())))->second, at.signal) == 0;
    if (at.signal == SIGKILL) return kill_all(job), true;
    for (const auto& [rank, pid] : living) kill(pid, at.signal);
    return true;
  }

  // Where the process began, as it said itself.
  static void check_beginning(const RunResult& r, int64_t after) {
    const std::string words = "the run goes on after step ";
    const size_t at = r.err.find(words);
    if (at != std::string::npos) {
      EXPECT_EQ(std::stoll(r.err.substr(at + words.size())), after) << r.err;
    }
    EXPECT_EQ(r.err.find("damaged"), std::string::npos) << r.err;
    EXPECT_EQ(r.err.find("is not what was saved"), std::string::npos) << r.err;
  }

  void run_in_parts(int wanted) {
    const SavingRun run(ranks_, words_);
    for (int of_this_run = 0;;) {
      const int64_t after = run.latest();
      std::optional<Instant> at;
      if (kills_ < wanted && of_this_run < 4) at = instant(after > 0);
      const std::unique_ptr<Job> job = run.start(at ? at->fault : std::nullopt);
      const bool struck = at && !at->fault && strike(run, *job, *at, after);
      const RunResult r = job->wait(240);
      SCOPED_TRACE(at ? at->name : "not killed");
      check_beginning(r, after);
      if (r.exit_code != 0 && at && (struck || run.struck())) {
        ++of_this_run, ++kills_, ++tally_[at->name];
        if (r.exit_code == 6) {
          EXPECT_EQ(run.latest(), run.metrics().back()["step"]) << "all was saved";
        }
        continue;
      }
      ASSERT_EQ(r.exit_code, 0) << r.err;
      if (after < kWholeSteps) {
        EXPECT_EQ(nlohmann::json::parse(r.out)["first_step"], after + 1);
      }
      break;
    }
    EXPECT_EQ(run.losses(), losses_);
    EXPECT_EQ(run.content(kWholeSteps) == content_, true) << "the final state is not that of the uninterrupted run";
  }

  int ranks_;
  Job::Words words_;
  std::mt19937_64 random_;
  std::string content_;
  std::vector<double> losses_;
  double run_s_ = 0;
  int kills_ = 0, turn_ = 0;
  std::map<std::string, int> tally_;
};

TEST(Kills, ARunOfOneProcessEndsWithTheBitsOfTheUninterruptedRun) { Killing(0, {}, 1).kill_times(kills_of(3, 6)); }

TEST(Kills, ARunOfFourRanksEndsWithTheBitsOfTheUninterruptedRun) {
  Killing(4, {"parallel.tp=2", "parallel.zero1=true"}, 2).kill_times(kills_of(2, 4));
}

}  // namespace
}  // namespace hlat::test
