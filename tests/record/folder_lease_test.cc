// One run, one folder: who holds it, who may take it over and when, and what the loser hears.
#include "record/folder_lease.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/json_text.h"
#include "base/machine.h"
#include "record/run_folder.h"
#include "support/message_of.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

using nlohmann::json;
using test::slurp;
using test::TempDir;

json lock_in(const TempDir& dir) { return json::parse(slurp(dir.path("run.lock"))); }

// A lock as a process of another host leaves it.
void write_foreign(const TempDir& dir, int sequence, double lease_s = 1) {
  dir.write("run.lock", json_text(json{{"host", "node-7"},
                                       {"pid", 4711},
                                       {"since", "yesterday"},
                                       {"lease_s", lease_s},
                                       {"space", "elsewhere"},
                                       {"token", 99},
                                       {"sequence", std::to_string(sequence)}}));
}

// Waits for the other thread, however long it takes.
template <class Done>
void await(const Done& done) {
  while (!done()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

TEST(FolderLease, NamesItsOwnerAndGoesAwayWithIt) {
  const TempDir dir;
  {
    const FolderLease lease(dir.path(), 60);
    EXPECT_EQ(lock_in(dir)["host"], host_name());
    EXPECT_EQ(lock_in(dir)["pid"], getpid());
    EXPECT_EQ(lease_token(dir.path()), lease.token());
    const std::string told = message_of([&] { FolderLease(dir.path(), 60); });
    EXPECT_NE(told.find(fmt::format("another run is writing to {}: process {} on {}, since 20", dir.path(), getpid(), host_name())),
              std::string::npos)
        << told;
    EXPECT_THROW(FolderLease(dir.path(), 60), UsageError);
    EXPECT_NE(told.find("choose another run.dir or stop it"), std::string::npos) << told;
    const std::string folder_option = message_of([&] { FolderLease(dir.path(), 60, FolderLease::Say{}, "--out"); });
    EXPECT_NE(folder_option.find("choose another --out or stop it"), std::string::npos) << folder_option;
  }
  EXPECT_EQ(lease_token(dir.path()), 0u);
  EXPECT_TRUE(std::filesystem::is_empty(dir.path())) << "no claims and halves are left";
}

TEST(FolderLease, IsRenewedWhileItLives) {
  const TempDir dir;
  const FolderLease lease(dir.path(), 0.05);
  const std::string first = lock_in(dir)["sequence"];
  await([&] { return lock_in(dir)["sequence"] != first; });
}

TEST(FolderLease, OfADeadProcessOfThisHostIsTakenOverAtOnce) {
  const TempDir dir;
  const pid_t child = fork();
  if (child == 0) {
    new FolderLease(dir.path(), 86400);  // never given back
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  ASSERT_EQ(lock_in(dir)["pid"], child);
  const FolderLease lease(dir.path(), 60);  // it would wait for a day
  EXPECT_NE(lease.taken_over().find(fmt::format("taken over from process {} on {}", child, host_name())), std::string::npos)
      << lease.taken_over();
  EXPECT_EQ(lock_in(dir)["pid"], getpid());
}

TEST(FolderLease, OfAProcessThatEndedAndThatNobodyWaitedForIsTakenOver) {
  const TempDir dir;
  const pid_t child = fork();
  if (child == 0) {
    new FolderLease(dir.path(), 86400);
    _exit(0);
  }
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);  // it stays a zombie
  const std::string told = message_of([&] { FolderLease(dir.path(), 60); });
  waitpid(child, nullptr, 0);
  EXPECT_EQ(told, "no exception");
}

TEST(FolderLease, AFileThatCannotBeLookedAtIsNotLost) {
  const TempDir dir;
  const FolderLease lease(dir.path(), 0.05);
  std::filesystem::create_hard_link(dir.path("run.lock"), dir.path("kept"));
  std::filesystem::create_symlink("run.lock", dir.path("loop"));
  std::filesystem::rename(dir.path("loop"), dir.path("run.lock"));  // ELOOP from now on
  const auto sequence = [&] { return json::parse(slurp(dir.path("kept")))["sequence"].get<std::string>(); };
  for (int turn = 0; turn < 3; ++turn) {
    const std::string before = sequence();
    await([&] { return sequence() != before; });
  }
  EXPECT_NO_THROW(lease.check());
}

TEST(FolderLease, ALockWithValuesOfOtherTypesHasAnUnknownOwner) {
  const TempDir dir;
  dir.write("run.lock", R"({"host": 7, "pid": "x", "since": [], "space": null, "began": 1, "token": "y", "lease_s": 1})");
  EXPECT_EQ(lease_token(dir.path()), 0u);
  const FolderLease lease(dir.path(), 60);
  EXPECT_NE(lease.taken_over().find("from process 0 on an unknown host, since an unknown time"), std::string::npos) << lease.taken_over();
}

TEST(FolderLease, OfASilentHostIsTakenOverAfterItsLeaseWithAWord) {
  const TempDir dir;
  write_foreign(dir, 1);
  std::string said;
  const FolderLease lease(dir.path(), 60, [&](const std::string& text) { said = text; });
  EXPECT_NE(said.find("belongs to process 4711 on node-7, since yesterday: waiting 1 s for a sign of life"), std::string::npos) << said;
  EXPECT_NE(lease.taken_over().find("which was silent for 1 s"), std::string::npos) << lease.taken_over();
  EXPECT_EQ(lease_token(dir.path()), lease.token());
}

TEST(FolderLease, OfALivingHostIsRefused) {
  const TempDir dir;
  write_foreign(dir, 1, 1000);
  const auto renew = [&](const std::string&) { write_foreign(dir, 2, 1000); };  // while the other watches
  const std::string told = message_of([&] { FolderLease(dir.path(), 60, renew); });
  EXPECT_NE(told.find("process 4711 on node-7, since yesterday"), std::string::npos) << told;
  EXPECT_EQ(lease_token(dir.path()), 99u);
}

TEST(FolderLease, AnOwnerWhoLostItHearsSo) {
  const TempDir dir;
  FolderLease lease(dir.path(), 0.05);
  EXPECT_NO_THROW(lease.check());
  const TempDir other;
  write_foreign(other, 1);
  std::filesystem::rename(dir.write("taken", slurp(other.path("run.lock"))), dir.path("run.lock"));  // as a takeover does it
  await([&] { return message_of([&] { lease.check(); }) != "no exception"; });
  EXPECT_NE(message_of([&] { lease.check(); }).find("another process has taken over"), std::string::npos);
  lease.release();
  EXPECT_EQ(lease_token(dir.path()), 99u) << "another's lock is left alone";
}

TEST(FolderLease, OfTwoWhoWantADeadOwnersFolderOneGetsIt) {
  for (int round = 0; round < 20; ++round) {
    const TempDir dir;
    const pid_t child = fork();
    if (child == 0) {
      new FolderLease(dir.path(), 86400);
      _exit(0);
    }
    waitpid(child, nullptr, 0);
    std::atomic<int> got = 0, tried = 0;
    const auto want = [&] {
      try {
        const FolderLease lease(dir.path(), 60);
        ++got, ++tried;
        await([&] { return tried == 4; });
      } catch (const UsageError&) {
        ++tried;
      }
    };
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back(want);
    threads.clear();
    EXPECT_EQ(got, 1);
  }
}

TEST(RunFolder, ARunThatLostItsFolderRecordsNoMore) {
  const TempDir dir;
  RunFolder folder(dir.path(), "", false, 0.05);
  StepMetrics metrics;
  folder.record(metrics);
  std::filesystem::remove(dir.path("run.lock"));
  await([&] { return message_of([&] { folder.lease().check(); }) != "no exception"; });
  EXPECT_THROW(folder.record(metrics), Error);
}

}  // namespace
}  // namespace hlat
