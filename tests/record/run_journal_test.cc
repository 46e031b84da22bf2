// events.jsonl: every start, fault and end with its fields, appended over restarts, by whichever rank has to tell.
#include "record/run_journal.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/machine.h"
#include "record/run_folder.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

using nlohmann::json;
using test::slurp;

std::vector<json> events_in(const test::TempDir& dir) {
  std::ifstream in(dir.path("events.jsonl"));
  std::vector<json> out;
  for (std::string line; std::getline(in, line);) out.push_back(json::parse(line));
  return out;
}

JournalOrigin origin(int rank) { return {.rank = rank, .ranks = 2, .config = "abc", .version = "1.2"}; }

TEST(RunJournal, TellsEveryStartAndEndOverRestarts) {
  const test::TempDir dir;
  for (const int code : {4, 0}) {
    RunFolder folder(dir.path(), "", false);
    RunJournal journal(origin(0));
    journal.open(dir.path(), folder.lease().token(), folder.shared_log());
    journal.end(7, code == 0 ? "finished" : "the disk is full", code);
    journal.end(7, "an error that follows from the first", 1);
  }
  const auto events = events_in(dir);
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0]["kind"], "start");
  EXPECT_TRUE(events[0]["exit_code"].is_null());
  EXPECT_EQ(events[1]["kind"], "end");
  EXPECT_EQ(events[1]["exit_code"], 4);
  EXPECT_EQ(events[1]["step"], 7);
  EXPECT_EQ(events[1]["reason"], "the disk is full");
  EXPECT_EQ(events[3]["exit_code"], 0);
  for (const json& e : events) {
    EXPECT_EQ(e["host"], host_name());
    EXPECT_EQ(e["pid"], getpid());
    EXPECT_EQ(e["rank"], 0);
    EXPECT_EQ(e["ranks"], 2);
    EXPECT_EQ(e["config"], "abc");
    EXPECT_EQ(e["version"], "1.2");
    EXPECT_TRUE(e["time"].get<std::string>().ends_with("Z"));
  }
  EXPECT_NE(slurp(dir.path("log.txt")).find("end at step 7, exit code 0: finished"), std::string::npos);
  EXPECT_NE(slurp(dir.path("previous_1/log.txt")).find("end at step 7, exit code 4: the disk is full"), std::string::npos);
}

TEST(RunJournal, AnotherRankWritesOnlyWhereRank0HasTheFolder) {
  const test::TempDir dir;
  RunFolder folder(dir.path(), "", false);
  RunJournal mine(origin(1)), elsewhere(origin(1)), unopened(origin(1));
  mine.join(dir.path(), folder.lease().token());
  elsewhere.join(dir.path(), folder.lease().token() + 2);
  mine.fault(3, "rank 0 is gone", {0});
  elsewhere.fault(3, "not here", {0});
  unopened.end(3, "no folder yet", 1);
  ASSERT_EQ(events_in(dir).size(), 1u);
  EXPECT_EQ(events_in(dir)[0]["missing"], json({0}));
  EXPECT_NE(slurp(dir.path("log.txt")).find("rank 1 of 2 on " + host_name() + ": fault at step 3: rank 0 is gone"), std::string::npos);
}

TEST(RunJournal, ARunEndsOnceWhicheverRankTellsItFirst) {
  const test::TempDir dir;
  RunFolder folder(dir.path(), "", false);
  RunJournal first(origin(0)), second(origin(1));
  first.open(dir.path(), folder.lease().token(), folder.shared_log());
  second.join(dir.path(), folder.lease().token());
  second.end(3, "the cause", 4);
  first.fault(3, "what follows from it", {1});
  first.end(3, "what follows from it", 1);
  const auto events = events_in(dir);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1]["reason"], "the cause");
  EXPECT_NE(slurp(dir.path("log.txt")).find("end at step 3, exit code 1: what follows from it"), std::string::npos);
}

TEST(RunJournal, ARunThatLostItsFolderTellsNothingInIt) {
  const test::TempDir dir;
  RunFolder folder(dir.path(), "", false);
  RunJournal journal(origin(0));
  journal.open(dir.path(), folder.lease().token(), folder.shared_log());
  std::filesystem::rename(dir.write("taken", R"({"token": 99})"), dir.path("run.lock"));  // as a takeover does it
  journal.signal(2, "SIGTERM");
  journal.end(3, "this run has lost its folder", 1);
  EXPECT_EQ(events_in(dir).size(), 1u);
}

TEST(RunJournal, TellsTheLatestCheckpointOfTheRunThatTheFolderHas) {
  const test::TempDir dir;
  EXPECT_EQ(recorded_save(dir.path()), 0);
  RunFolder folder(dir.path(), "", false);
  const auto start = [&](bool anew, int64_t saved) {
    RunJournal journal(origin(0));
    journal.open(dir.path(), folder.lease().token(), folder.shared_log(), anew);
    if (saved > 0) journal.save(saved, "saved", false, saved);
    return recorded_save(dir.path());
  };
  EXPECT_EQ(start(true, 4), 4);
  EXPECT_EQ(start(false, 0), 4);
  EXPECT_EQ(start(false, 8), 8);
  EXPECT_EQ(start(true, 0), 0) << "a new run has none";
}

TEST(RunJournal, WordsThatAreNoUtf8AreStillJson) {
  const test::TempDir dir;
  RunFolder folder(dir.path(), "", false);
  RunJournal journal(origin(0));
  journal.open(dir.path(), folder.lease().token(), folder.shared_log());
  journal.end(1, "cannot read \xff\xfe.txt", 2);
  EXPECT_EQ(events_in(dir).at(1)["reason"], "cannot read \xef\xbf\xbd\xef\xbf\xbd.txt");
}

}  // namespace
}  // namespace hlat
