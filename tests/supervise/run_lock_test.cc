// The lock of a run folder as the launcher sees it.
#include "supervise/run_lock.h"

#include <gtest/gtest.h>

#include <fstream>

#include "record/folder_lease.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

namespace fs = std::filesystem;

std::string lock_of(const char* host, int pid, int sequence) {
  return "{\"host\": \"" + std::string(host) + "\", \"pid\": " + std::to_string(pid) +
         ", \"lease_s\": 20, \"space\": \"another host\", \"token\": 1, \"sequence\": \"" + std::to_string(sequence) + "\"}\n";
}

TEST(RunLock, OnlyThatOfTheProcessThatIsGoneIsRemoved) {
  const test::TempDir dir;
  EXPECT_FALSE(lock_owner(dir.path()));
  EXPECT_FALSE(remove_lock_of(dir.path(), {"far", 7}));
  dir.write("run.lock", lock_of("far", 7, 1));
  EXPECT_EQ(lock_owner(dir.path()), (LockOwner{"far", 7}));
  EXPECT_FALSE(remove_lock_of(dir.path(), {"far", 8}));
  EXPECT_FALSE(remove_lock_of(dir.path(), {"near", 7}));
  EXPECT_TRUE(fs::exists(dir.path("run.lock")));
  EXPECT_TRUE(remove_lock_of(dir.path(), {"far", 7}));
  EXPECT_FALSE(fs::exists(dir.path("run.lock")));
  dir.write("run.lock", "no JSON");
  EXPECT_FALSE(lock_owner(dir.path()));
}

TEST(RunLock, ALockThatIsRenewedIsNotFreeAndASilentOneIsAfterItsLease) {
  const test::TempDir dir;
  LockWatch lock(dir.path());
  EXPECT_TRUE(lock.is_free(0));
  for (int i = 0; i < 10; ++i) {
    dir.write("run.lock", lock_of("far", 7, i));
    EXPECT_FALSE(lock.is_free(10 * i)) << "it is renewed";
  }
  EXPECT_FALSE(lock.is_free(90 + 19));
  EXPECT_TRUE(lock.is_free(90 + 21));
  lock.remove();
  EXPECT_FALSE(fs::exists(dir.path("run.lock")));
}

TEST(RunLock, WhatHasChangedSinceStays) {
  const test::TempDir dir;
  LockWatch lock(dir.path());
  dir.write("run.lock", lock_of("far", 7, 1));
  EXPECT_FALSE(lock.is_free(0));
  EXPECT_TRUE(lock.is_free(30));
  dir.write("run.lock", lock_of("far", 7, 2));
  lock.remove();
  EXPECT_TRUE(fs::exists(dir.path("run.lock")));
}

TEST(RunLock, ALivingOwnerOfThisHostIsNotFree) {
  const test::TempDir dir;
  const FolderLease lease(dir.path(), 60);
  LockWatch lock(dir.path());
  EXPECT_FALSE(lock.is_free(0));
  EXPECT_THROW(FolderLease(dir.path(), 60), FolderHeld);
}

}  // namespace
}  // namespace hlat
