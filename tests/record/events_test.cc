// Lines of events.jsonl, by the launcher and by others: written whole, read with what is wrong in them, and held while a disk is full.
#include "record/events.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "support/temp_dir.h"

namespace hlat {
namespace {

TEST(Events, TheLaunchersLinesAreReadAsTheyWereTold) {
  const test::TempDir dir;
  {
    LaunchJournal journal(dir.path("new/run"), "1.2");
    journal.launch("hlat launch");
    journal.attempt({.number = 2, .ranks = 8, .mesh = "tp 2, pp 1, dp 4", .hosts = {"a", "b"}, .from = 40});
    journal.fault({.kind = "hang",
                   .rank = 3,
                   .host = "b",
                   .step = 57,
                   .until = 60,
                   .reason = "waits",
                   .progressed_at = wall_time() - 5,
                   .exit_code = 4,
                   .saved = 50});
    journal.teardown(1.5, "all ended");
    journal.restart(2, 50, "again");
    journal.skip(57, 59, "not finite");
    journal.skip(70, 70, "not finite");
    journal.straggler(3, "b", 57, "slow");
    journal.evict("b", "slow");
    journal.check(12.5, false, "bad matmul");
    journal.wait(30, "for b");
    journal.stop(4, 57, "too often");
    journal.finished(100);
  }
  const EventsRead read = read_events(dir.path("new/run"));
  EXPECT_TRUE(read.problems.empty());
  ASSERT_EQ(read.events.size(), 13u);
  std::vector<std::string> kinds;
  for (const RunEvent& e : read.events) {
    kinds.push_back(e.kind);
    EXPECT_EQ(e.by, "launch");
    EXPECT_NEAR(e.time, wall_time(), 60);
    EXPECT_EQ(e.attempt, e.kind == "launch" ? 0 : 2);
  }
  EXPECT_EQ(kinds, (std::vector<std::string>{"launch", "attempt", "fault", "teardown", "restart", "skip", "skip", "straggler", "evict",
                                             "check", "wait", "stop", "finished"}));
  const RunEvent& attempt = read.events[1];
  EXPECT_EQ(attempt.ranks, 8);
  EXPECT_EQ(attempt.mesh, "tp 2, pp 1, dp 4");
  EXPECT_EQ(attempt.hosts, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(attempt.step, 40);
  const RunEvent& fault = read.events[2];
  EXPECT_EQ(fault.cause, "hang");
  EXPECT_EQ(fault.rank, 3);
  EXPECT_EQ(fault.host, "b");
  EXPECT_EQ(fault.step, 57);
  EXPECT_EQ(fault.until, 60);
  EXPECT_EQ(fault.exit_code, 4);
  EXPECT_EQ(fault.saved, 50);
  EXPECT_NEAR(fault.time - fault.progressed_at, 5, 1);
  EXPECT_NEAR(fault.seconds, 5, 1);
  EXPECT_EQ(read.events[3].seconds, 1.5);
  EXPECT_EQ(read.events[4].pause_s, 2);
  EXPECT_EQ(read.events[5].step, 57);
  EXPECT_EQ(read.events[5].until, 59);
  EXPECT_EQ(read.events[6].until, 0) << "one step, as versions before told it";
  EXPECT_EQ(read.events[9].exit_code, 1);
  EXPECT_EQ(read.events[11].exit_code, 4);
  EXPECT_EQ(read.events[12].exit_code, 0);
}

TEST(Events, DamagedLinesAreNamedAndTheRestIsRead) {
  const test::TempDir dir;
  dir.write("events.jsonl",
            "{\"time\":\"2026-01-02T03:04:05.500Z\",\"kind\":\"start\",\"step\":\"seven\",\"rank\":null}\n"
            "garbage\n"
            "[1]\n"
            "{\"kind\":\"end\"}\n"
            "{\"time\":\"2026-01-02T03:04:06.500Z\"}\n"
            "{\"time\":\"2026-01-02T03:04:07.500Z\",\"kind\":\"a new one\"}\n"
            "{\"time\":\"2026-01-");
  const EventsRead read = read_events(dir.path());
  EXPECT_EQ(read.problems,
            (std::vector<std::string>{"line 2 is no JSON object", "line 3 is no JSON object", "line 4 has no time", "line 5 has no kind"}));
  ASSERT_EQ(read.events.size(), 2u);
  EXPECT_EQ(read.events[0].step, 0) << "a value of another type is left out";
  EXPECT_EQ(read.events[1].time - read.events[0].time, 2);
  EXPECT_TRUE(read_events(dir.path("nowhere")).events.empty());
}

TEST(Events, TimesGoThereAndBack) {
  EXPECT_EQ(utc_text(0.25), "1970-01-01T00:00:00.250Z");
  EXPECT_EQ(time_of("1970-01-02T00:00:01.500Z"), 86401.5);
  EXPECT_NEAR(time_of(utc_text(1790000000.1234)), 1790000000.123, 1e-6);
  for (const char* text : {"", "yesterday", "2026-01-02", "2026-01-02T03:04:05.5", "2026-01-02T03:04:05.5+01:00"})
    EXPECT_EQ(time_of(text), 0) << text;
}

TEST(Events, APartOfALineThatADeadProcessLeftGoesAway) {
  const test::TempDir dir;
  dir.write("events.jsonl", "{\"time\":\"2026-01-02T03:04:05.500Z\",\"kind\":\"start\"}\n{\"ti");
  LaunchJournal(dir.path(), "1").launch("again");
  EXPECT_EQ(read_events(dir.path()).events.size(), 2u);
  EXPECT_TRUE(read_events(dir.path()).problems.empty());
}

TEST(Events, LinesThatADiskDoesNotTakeAreHeldAndWrittenLater) {
  const test::TempDir dir;
  LaunchJournal journal(dir.path(), "1");
  journal.launch("first");
  const auto size = std::filesystem::file_size(dir.path("events.jsonl"));
  // A limit on the size of files, a little above: part of the next line fits.
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit low = before;
  low.rlim_cur = size + 20;
  const auto old = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
  journal.teardown(1, "second");
  journal.stop(4, 1, "third");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, old);
  EXPECT_EQ(journal.held(), 2u);
  EXPECT_EQ(std::filesystem::file_size(dir.path("events.jsonl")), size) << "no part of a line stays";
  journal.finished(9);
  EXPECT_EQ(journal.held(), 0u);
  const EventsRead read = read_events(dir.path());
  EXPECT_TRUE(read.problems.empty());
  ASSERT_EQ(read.events.size(), 4u);
  EXPECT_EQ(read.events[1].reason, "second");
  EXPECT_EQ(read.events[2].reason, "third");
}

TEST(Events, AFolderThatCannotBeMadeEndsNothing) {
  const test::TempDir dir;
  dir.write("file", "");
  LaunchJournal journal(dir.path("file/below"), "1");
  journal.launch("nowhere to write");
  EXPECT_EQ(journal.held(), 1u);
}

}  // namespace
}  // namespace hlat
