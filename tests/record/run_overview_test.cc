// How a run stands, by its events, its lock and its records.
#include "record/run_overview.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/machine.h"
#include "record/run_folder.h"
#include "record/run_journal.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

std::string line(const char* kind, const std::string& more = "") {
  return fmt::format("{{\"time\":\"2026-01-02T03:04:05.500Z\",\"kind\":\"{}\"{}}}\n", kind, more);
}

TEST(RunOverview, StatesByTheLastEnd) {
  const std::string start = line("start");
  const std::string launch = line("launch", fmt::format(",\"by\":\"launch\",\"host\":\"{}\",\"pid\":{}", host_name(), getpid()));
  const std::string dead = line("launch", fmt::format(",\"by\":\"launch\",\"host\":\"{}\",\"pid\":{}", host_name(), 1 << 30));
  const auto end = [](const char* kind, int code) { return line(kind, fmt::format(",\"exit_code\":{}", code)); };
  const std::vector<std::pair<std::string, RunState>> rows = {
      {start, RunState::failed},  // nobody holds the folder
      {start + end("end", 0), RunState::finished},
      {start + end("end", 4), RunState::failed},
      {start + end("end", 6), RunState::stopped},
      {start + end("end", 130), RunState::stopped},
      {start + end("end", 0) + start, RunState::failed},
      {launch, RunState::running},
      {launch + start + end("end", 4), RunState::running},  // between two attempts
      {launch + start + end("end", 0) + end("finished", 0), RunState::finished},
      {launch + end("stop", 5), RunState::failed},
      {dead + start, RunState::failed},
      {dead + start + end("end", 6), RunState::stopped},
  };
  for (const auto& [text, state] : rows) {
    const test::TempDir dir;
    dir.write("events.jsonl", text);
    EXPECT_EQ(name_of(read_run(dir.path()).state), name_of(state)) << text;
  }
}

TEST(RunOverview, AFolderInUseIsARunningRun) {
  const test::TempDir dir;
  {
    RunFolder folder(dir.path(), "", false);
    RunJournal journal({});
    journal.open(dir.path(), folder.lease().token(), folder.shared_log(), true, {.seconds = 0.5});
    journal.ready(0, {.total = 12, .seconds = 1, .load_s = 0.25});
    folder.record(StepMetrics{.step = 3, .loss = 2.5, .step_s = 0.125});
    const RunOverview run = read_run(dir.path());
    EXPECT_EQ(run.state, RunState::running);
    EXPECT_EQ(run.step, 3);
    EXPECT_EQ(run.total, 12);
    EXPECT_EQ(run.loss, 2.5);
    EXPECT_EQ(run.last_event(), "start: started") << "ready is routine";
    EXPECT_TRUE(FolderLease::is_held(dir.path()));
  }
  EXPECT_FALSE(FolderLease::is_held(dir.path()));
  EXPECT_EQ(read_run(dir.path()).state, RunState::failed) << "no end, and nobody there";
}

TEST(RunOverview, RunFoldersAreFoundBelowAFolder) {
  const test::TempDir dir;
  for (const char* name : {"b", "a/deep/er", "b/previous_1", ".hidden", "empty"}) std::filesystem::create_directories(dir.path(name));
  for (const char* name : {"b", "a/deep/er", "b/previous_1", ".hidden"}) dir.write(std::string(name) + "/events.jsonl", line("start"));
  std::filesystem::create_directory_symlink(dir.path(), dir.path("loop"));
  EXPECT_EQ(run_folders(dir.path()), (std::vector<std::filesystem::path>{dir.path("a/deep/er"), dir.path("b")}));
  EXPECT_EQ(run_folders(dir.path("b")), std::vector<std::filesystem::path>{dir.path("b")});
}

TEST(RunOverview, WordsOfEvents) {
  EXPECT_EQ(words_of({.kind = "fault", .by = "launch", .step = 12, .reason = "waits", .rank = 3, .host = "n2", .cause = "hang"}),
            "fault: hang at step 12, rank 3 on n2: waits");
  EXPECT_EQ(words_of({.kind = "restart", .by = "launch", .step = 20, .rank = -1}), "restart after step 20");
  EXPECT_EQ(words_of({.kind = "end", .step = 5, .reason = "finished", .exit_code = 0}), "end at step 5, exit code 0: finished");
  EXPECT_EQ(words_of({.kind = "check", .by = "launch", .exit_code = 1, .rank = -1}), "check failed");
  EXPECT_EQ(words_of({.kind = "alarm", .step = 40, .reason = "it grows", .rule = "grad_growth"}),
            "alarm: grad_growth at step 40: it grows");
}

// Steps that are done again behind a restart raise their alarms again.
TEST(RunOverview, AnAlarmThatComesAgainAtItsStepCountsOnce) {
  const test::TempDir dir;
  const auto alarm = [](const char* rule, int step) { return line("alarm", fmt::format(",\"rule\":\"{}\",\"step\":{}", rule, step)); };
  dir.write("events.jsonl", line("start") + alarm("growth", 7) + alarm("growth", 8) + alarm("leak", 8) + line("start") +
                                alarm("growth", 7) + alarm("growth", 9));
  EXPECT_EQ(read_run(dir.path()).alarms(), (std::map<std::string, int64_t>{{"growth", 3}, {"leak", 1}}));
}

// A start tells what the folder had, and a restart what is done again.
TEST(RunFolderPast, IsWhatWasRecordedBefore) {
  const test::TempDir dir;
  {
    RunFolder folder(dir.path(), "", false);
    EXPECT_FALSE(folder.past().reached);
    for (int step = 1; step <= 6; ++step) folder.record(StepMetrics{.step = step, .step_s = 0.5});
  }
  {
    RunFolder folder(dir.path(), "", false, 60, {}, {.goes_on = true});
    EXPECT_EQ(folder.past().reached, 6);
    EXPECT_NEAR(folder.past().progressed_at, wall_time(), 60);
    folder.go_on(4);
    EXPECT_EQ(folder.past().repeated, 2);
    EXPECT_EQ(folder.past().repeated_s, 1);
  }
  RunFolder anew(dir.path(), "", false);
  EXPECT_EQ(anew.past().reached, 4);
  EXPECT_EQ(anew.past().repeated, 4);
  EXPECT_EQ(anew.past().repeated_s, 2);
}

}  // namespace
}  // namespace hlat
