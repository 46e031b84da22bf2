// The watch over the start-up: a phase that lasts too long is named, and so is who is missing on this host.
#include "runtime/start_watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <utility>

#include "runtime/job_processes.h"

namespace hlat {
namespace {

TEST(StartWatch, NamesThePhaseThatDoesNotEnd) {
  std::promise<std::string> told;
  bool first = true;
  StartWatch watch({}, 3600, [&](const std::string& words) {
    if (std::exchange(first, false)) told.set_value(words);
  });
  watch.begin("reading the config");
  watch.begin("opening the data");
  watch.set_limit(0.01);
  EXPECT_EQ(told.get_future().get(), "start-up: opening the data has not ended within 0.01 s (parallel.start_timeout_s)");
  EXPECT_EQ(watch.phase(), "opening the data");
  watch.finish();
  EXPECT_EQ(watch.phase(), "");
}

TEST(StartWatch, AStartUpThatIsOverIsNotWatched) {
  std::atomic<int> told = 0;
  {
    StartWatch watch({}, 0, [&](const std::string&) { ++told; });
    watch.finish();
  }
  EXPECT_LE(told, 1);
}

TEST(JobProcesses, TellsWhoIsGoneAndWhoIsStopped) {
  const std::map<int, JobProcess> found = {{0, {.pid = 10, .state = 'S'}}, {2, {.pid = 12, .state = 'T'}}, {3, {.pid = 13, .state = 'R'}}};
  const Absent absent = absent_ranks(found, {0, 1, 2, 3});
  EXPECT_EQ(absent.ranks, (std::vector{1, 2}));
  EXPECT_EQ(absent.words, "rank 1 is gone, rank 2 (process 12) is stopped");
  EXPECT_EQ(absent_ranks(found, {0, 3}).words, "");
  EXPECT_EQ(absent_ranks({}, {0, 1}).words, "") << "a launcher that names no jobs: nothing is known";
}

TEST(JobProcesses, AllRanksAreExpectedWhereTheLauncherSaysThatTheyAreHere) {
  const std::map<int, JobProcess> found = {{1, {}}};
  const Launch launch{.rank = 1, .ranks = 3, .by = "mpirun"};
  const auto local = [](const char* size) { return [size](const char*) { return size; }; };
  EXPECT_EQ(expected_here(launch, local("3"), found), (std::vector{0, 1, 2}));
  EXPECT_EQ(expected_here(launch, local("2"), found), (std::vector{1}));
}

}  // namespace
}  // namespace hlat
