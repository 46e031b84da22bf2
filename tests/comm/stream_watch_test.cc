// What is watched for the threads that wait for nothing: operations that never end, and errors of the library.
#include "comm/stream_watch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>

#include "support/message_of.h"

namespace hlat {
namespace {

class FakeOps final : public WatchedStream {
 public:
  std::optional<Current> current() override {
    const std::lock_guard lock(mutex_);
    return now_;
  }
  std::string error() override {
    const std::lock_guard lock(mutex_);
    return error_;
  }
  void abort() override { aborted = true; }

  void set(std::optional<Current> now, std::string error = {}) {
    const std::lock_guard lock(mutex_);
    now_ = std::move(now);
    error_ = std::move(error);
  }
  std::atomic<bool> aborted = false;

 private:
  std::mutex mutex_;
  std::optional<Current> now_;
  std::string error_;
};

bool within(double seconds, const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!done() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return done();
}

TEST(StreamWatch, AnOperationThatHangsEndsAllStreams) {
  StreamWatch watch(0.2);
  FakeOps hangs, other;
  watch.add(hangs);
  watch.add(other);
  hangs.set(WatchedStream::Current{7, "tp all_reduce on rank 1 of 4"});
  EXPECT_TRUE(within(30, [&] { return hangs.aborted && other.aborted; }));
  EXPECT_EQ(message_of([&] { watch.check(); }), "tp all_reduce on rank 1 of 4: waited 0.2 s for its peers");
  watch.remove(hangs);
  watch.remove(other);
}

TEST(StreamWatch, OperationsThatComeAndGoAreNoMatter) {
  StreamWatch watch(0.5);
  FakeOps busy;
  watch.add(busy);
  // Together they take longer than the limit, none of them alone.
  for (uint64_t i = 1; i <= 20; ++i) {
    busy.set(WatchedStream::Current{i, "dp reduce_scatter on rank 0 of 2"});
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  busy.set({});
  EXPECT_EQ(message_of([&] { watch.check(); }), "no exception");
  EXPECT_FALSE(busy.aborted);
  watch.remove(busy);
}

TEST(StreamWatch, WhatTheLibraryReportsComesOut) {
  StreamWatch watch(1);
  FakeOps broken;
  watch.add(broken);
  broken.set({}, "pp on rank 0 of 2: NCCL: remote process exited");
  EXPECT_TRUE(within(30, [&] { return broken.aborted.load(); }));
  EXPECT_EQ(message_of([&] { watch.check(); }), "pp on rank 0 of 2: NCCL: remote process exited");
  watch.remove(broken);
}

TEST(StreamWatch, GivingUpIsAFailure) {
  StreamWatch watch(1000);
  FakeOps ops;
  watch.add(ops);
  watch.give_up("this rank gave up");
  watch.give_up("again");
  EXPECT_TRUE(ops.aborted);
  EXPECT_EQ(message_of([&] { watch.check(); }), "this rank gave up");
  watch.remove(ops);
}

}  // namespace
}  // namespace hlat
