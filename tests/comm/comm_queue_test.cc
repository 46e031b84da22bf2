// The queue of operations overlapped with the computation: order, overlap, errors, and the way out when something else fails.
#include "comm/comm_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

#include "comm/null_comm.h"
#include "comm/self_comm.h"
#include "support/comm_checks.h"
#include "support/host_memory.h"
#include "support/message_of.h"
#include "support/thread_comm.h"

namespace hlat {
namespace {

constexpr double kQueueLimit = 60;  // seconds until a deadlock becomes an error

void pause_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

TEST(CommQueue, SumsLikeTheCallerWould) {
  run_thread_ranks(
      4,
      [](Comm& world) {
        HostMemory memory;
        Region region = memory.region(Purpose::comm, test::staging_bytes(world.size()));
        world.reserve(region);
        CommQueue queue(world);
        std::vector<Tensor> tensors;
        std::vector<uint64_t> tickets;
        for (int k = 0; k < 30; ++k) {
          tensors.push_back(memory.zeros(DType::f32, {1 + k * 997}));
          for (int64_t i = 0; i < tensors.back().numel(); ++i) store_f64(tensors.back(), i, world.rank() + k);
          tickets.push_back(queue.submit([t = tensors.back()](Comm& c) { c.all_reduce(t); }));
        }
        for (size_t k = 0; k < tensors.size(); ++k) {
          queue.wait(tickets[k]);
          for (const double v : to_f64(tensors[k])) ASSERT_EQ(v, 6.0 + 4.0 * static_cast<double>(k));
        }
        queue.wait_all();
        EXPECT_GT(queue.busy_s(), 0);
      },
      kQueueLimit);
}

TEST(CommQueue, RunsInOrderWhileTheCallerGoesOn) {
  std::vector<std::unique_ptr<Comm>> comms = make_thread_comms(2, kQueueLimit);
  CommQueue queue(*comms[0]);
  std::atomic<bool> go = false;
  std::vector<int> order;
  queue.submit([&](Comm&) {
    go.wait(false);
    order.push_back(0);
  });
  uint64_t last = 0;
  for (int i = 1; i < 10; ++i) last = queue.submit([&, i](Comm&) { order.push_back(i); });
  go = true;  // reached: submit did not wait for the first operation
  go.notify_all();
  queue.wait(last);
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(CommQueue, HiddenTimeIsNotWaitedFor) {
  std::vector<std::unique_ptr<Comm>> comms = make_thread_comms(2, kQueueLimit);
  CommQueue queue(*comms[0]);
  const uint64_t hidden = queue.submit([](Comm&) { pause_ms(40); });
  while (queue.busy_s() == 0) pause_ms(1);  // the computation
  queue.wait(hidden);
  EXPECT_GE(queue.busy_s(), 0.04);
  EXPECT_EQ(queue.waited_s(), 0);
  const double busy = queue.busy_s();
  queue.wait(queue.submit([](Comm&) { pause_ms(200); }));
  EXPECT_GT(queue.waited_s(), 0);
  EXPECT_GE(queue.busy_s(), busy + 0.2);
}

TEST(CommQueue, TheFirstErrorComesOutOfItsTicketAndLaterOnes) {
  const std::vector<std::unique_ptr<Comm>> threads = make_thread_comms(2, kQueueLimit);
  SelfComm self;
  NullComm null(0, 8, "dp");
  for (Comm* comm : {threads[0].get(), static_cast<Comm*>(&self), static_cast<Comm*>(&null)}) {
    int ran = 0;
    CommQueue queue(*comm);
    const uint64_t good = queue.submit([&](Comm&) { ++ran; });
    const uint64_t bad = queue.submit([](Comm&) { fail("first"); });
    const uint64_t later = queue.submit([&](Comm&) {
      ++ran;
      fail("second");
    });
    EXPECT_EQ(message_of([&] { queue.wait(later); }), "first");
    EXPECT_EQ(message_of([&] { queue.wait(bad); }), "first");
    EXPECT_EQ(message_of([&] { queue.wait(good); }), "no exception");
    EXPECT_EQ(message_of([&] { queue.wait_all(); }), "first");
    EXPECT_EQ(ran, 1);
    queue.submit([&](Comm&) { ++ran; });
  }
}

TEST(CommQueue, WithoutPeersOperationsRunInline) {
  SelfComm self;
  NullComm null(0, 8, "dp");
  for (Comm* comm : {static_cast<Comm*>(&self), static_cast<Comm*>(&null)}) {
    CommQueue queue(*comm);
    std::thread::id where;
    queue.submit([&](Comm&) {
      where = std::this_thread::get_id();
      pause_ms(2);
    });
    EXPECT_EQ(where, std::this_thread::get_id());
    EXPECT_GT(queue.busy_s(), 0.001);
    EXPECT_EQ(queue.busy_s(), queue.waited_s());
  }
}

// A group whose calls only put work on a stream, and what it was told.
class StreamComm final : public Comm, private Overlap {
 public:
  StreamComm() : Comm(0, 2, "dp") {}
  std::unique_ptr<Comm> split(int, int, std::string) override { return nullptr; }
  Overlap& overlap() override { return *this; }
  std::vector<std::string> told;

 protected:
  uint64_t start_send(const void*, size_t, int, int) override { return 1; }
  uint64_t start_recv(void*, size_t, int, int) override { return 1; }
  void finish(uint64_t) override {}

 private:
  bool on_stream() const override { return true; }
  uint64_t mark() override { return 7; }
  void begin_overlap(uint64_t mark) override { told.push_back(fmt::format("begin after {}", mark)); }
  void end_overlap() override { told.emplace_back("end"); }
  void join() override { told.emplace_back("join"); }
};

TEST(CommQueue, OnAStreamOperationsArePutThereAtOnceAndJoinedWhenWaitedFor) {
  StreamComm comm;
  CommQueue queue(comm);
  const auto here = std::this_thread::get_id();
  queue.submit([&](Comm&) { comm.told.emplace_back(std::this_thread::get_id() == here ? "first" : "elsewhere"); });
  const uint64_t bad = queue.submit([&](Comm&) { fail("second"); });
  EXPECT_EQ(comm.told, (std::vector<std::string>{"begin after 7", "first", "end", "begin after 7", "end"}));
  queue.wait(bad - 1);
  EXPECT_EQ(comm.told.back(), "join");
  EXPECT_EQ(message_of([&] { queue.wait(bad); }), "second");
}

// Rank 0's queue waits for rank 1, rank 1 waits for rank 0 elsewhere, and rank 0 throws: its queue must let go.
TEST(CommQueue, AnExceptionOfItsOwnerDoesNotHang) {
  const auto body = [](Comm& world) {
    const auto dp = world.split(0, 0, "dp");
    if (world.rank() == 1) return world.barrier();
    CommQueue queue(*dp);
    queue.submit([](Comm& c) { c.barrier(); });
    queue.submit([](Comm& c) { c.barrier(); });
    pause_ms(5);
    throw std::runtime_error("compute failed");
  };
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(message_of([&] { run_thread_ranks(2, body, kQueueLimit); }), "compute failed");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

// A peer that fails ends the operation, and the error comes out of wait; what was never waited for ends quietly.
TEST(CommQueue, AFailedPeerEndsTheOperations) {
  const auto body = [](Comm& world) {
    const auto dp = world.split(0, 0, "dp");
    if (world.rank() == 1) throw std::runtime_error("rank 1 broke");
    CommQueue queue(*dp);
    const uint64_t ticket = queue.submit([](Comm& c) { c.barrier(); });
    queue.submit([](Comm& c) { c.barrier(); });
    if (world.rank() == 0) queue.wait(ticket);
  };
  EXPECT_EQ(message_of([&] { run_thread_ranks(3, body, kQueueLimit); }), "rank 1 broke");
}

}  // namespace
}  // namespace hlat
