// Communication: the properties of comm_checks.h for groups of threads, the contract of the front, failures, null groups.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

#include "comm/null_comm.h"
#include "comm/self_comm.h"
#include "comm/sum.h"
#include "support/comm_checks.h"
#include "support/host_memory.h"
#include "support/message_of.h"
#include "support/thread_comm.h"
#include "tensor/columns.h"

namespace hlat {
namespace {

constexpr double kLimit = 60;  // seconds until a deadlock becomes an error

Tensor t32(const Shape& shape) { return Tensor::contiguous(nullptr, DType::f32, shape); }

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

class Ranks : public testing::TestWithParam<int> {};

TEST_P(Ranks, HaveAllProperties) {
  run_thread_ranks(
      GetParam(), [](Comm& world) { test::check_all(world); }, kLimit);
}

INSTANTIATE_TEST_SUITE_P(Thread, Ranks, testing::Range(1, 9));

TEST(PartOf, SharesAllInOrder) {
  for (int64_t n = 0; n < 40; ++n) {
    for (int64_t holders = 1; holders < 10; ++holders) {
      int64_t next = 0;
      for (int64_t i = 0; i < holders; ++i) {
        const Part part = part_of(n, i, holders);
        EXPECT_EQ(part.begin, next);
        EXPECT_LE(part.count, part_of(n, 0, holders).count);
        EXPECT_GE(part.count, n / holders);
        next = part.end();
      }
      EXPECT_EQ(next, n);
    }
  }
}

TEST(SelfComm, HasAllProperties) {
  SelfComm self;
  test::check_all(self);
  EXPECT_EQ(self.traffic().bytes_sent(), 0);
}

// Every bf16 pattern, with its rounding from sums of two: NaN, infinities, ties and overflow among them.
TEST(SumInOrder, RoundsBf16LikeToBf16) {
  std::vector<bf16> a(1 << 16), b(1 << 16), out(1 << 16);
  for (size_t shift = 0; shift < 40; ++shift) {
    for (size_t i = 0; i < a.size(); ++i) {
      a[i].bits = static_cast<uint16_t>(i);
      b[i].bits = static_cast<uint16_t>(i * 40503u + shift * 1637u);
    }
    sum_in_order(out.data(), {a.data(), b.data()}, static_cast<int64_t>(a.size()), DType::bf16);
    for (size_t i = 0; i < a.size(); ++i) {
      const float sum = to_float(a[i]) + to_float(b[i]);
      const uint16_t want = to_bf16(sum).bits;
      // Which NaN comes out of a sum of two is the machine's choice.
      if (std::isnan(sum)) {
        ASSERT_TRUE(std::isnan(to_float(out[i])));
      } else {
        ASSERT_EQ(out[i].bits, want) << a[i].bits << " + " << b[i].bits;
      }
    }
  }
}

TEST(ThreadRanks, TheFirstErrorComesOutAndFreesTheOthers) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> secondary = 0;
    const auto body = [&](Comm& world) {
      try {
        const auto group = world.split(world.rank() % 2, 0, "half");
        world.barrier();
        if (world.rank() == 2) throw std::runtime_error("rank 2 broke");
        if (world.rank() % 3 == 0) world.barrier();
        group->barrier();  // the others wait in different groups
        world.barrier();
      } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find("another rank failed"), std::string::npos) << e.what();
        ++secondary;
        throw;
      }
    };
    std::string message;
    EXPECT_LT(seconds_of([&] { message = message_of([&] { run_thread_ranks(6, body, kLimit); }); }), kLimit / 2);
    EXPECT_EQ(message, "rank 2 broke");
    EXPECT_EQ(secondary, 5);
  }
}

TEST(ThreadRanks, AnErrorInTheMiddleOfLargeSumsIsClean) {
  for (int round = 0; round < 10; ++round) {
    const auto body = [&](Comm& world) {
      HostMemory memory;
      Region region = memory.region(Purpose::comm, test::staging_bytes(world.size()));
      world.reserve(region);
      const Tensor t = memory.zeros(DType::f32, {400000});
      for (int i = 0; i < 5; ++i) {
        if (i == round % 5 && world.rank() == 1) throw std::runtime_error("enough");
        world.all_reduce(t);
      }
    };
    EXPECT_EQ(message_of([&] { run_thread_ranks(4, body, kLimit); }), "enough");
  }
}

TEST(ThreadRanks, WaitingEndsWithOpAxisAndPeer) {
  const auto body = [](Comm& world) {
    const auto tp = world.split(0, 0, "tp");
    HostMemory memory;
    if (tp->rank() != 1) return;
    Request r = tp->recv(memory.zeros(DType::f32, {3}), 2, 0);
    tp->wait(r);
  };
  EXPECT_EQ(message_of([&] { run_thread_ranks(3, body, 1); }), "tp recv on rank 1 of 3: waited 1 s for rank 2");
}

TEST(ThreadRanks, SizesOfAMessageMustAgree) {
  const auto body = [](Comm& world) {
    HostMemory memory;
    const Tensor t = memory.zeros(DType::f32, {3 + world.rank()});
    Request r = world.rank() == 0 ? world.send(t, 1, 7) : world.recv(t, 0, 7);
    world.wait(r);
  };
  const std::string message = message_of([&] { run_thread_ranks(2, body, kLimit); });
  EXPECT_NE(message.find("(tag 7)"), std::string::npos) << message;
}

TEST(ThreadRanks, CancelFreesOneRankOnly) {
  std::vector<std::unique_ptr<Comm>> comms = make_thread_comms(2, kLimit);
  std::jthread waiting([&] { EXPECT_NE(message_of([&] { comms[0]->barrier(); }).find("this rank gave up"), std::string::npos); });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  comms[0]->cancel();
  waiting.join();
  EXPECT_NE(message_of([&] { comms[0]->barrier(); }).find("this rank gave up"), std::string::npos);
}

TEST(NullComm, CountsAndNeverWaits) {
  NullComm null(1, 3, "dp");
  Region region = Region::measuring(Purpose::comm);
  null.reserve(region);
  EXPECT_EQ(region.high_water(), 3u * 256 * 1024);
  null.all_reduce(t32({300, 10}));                // 1000 elements to each of two, then the sum to each of two
  null.reduce_scatter(t32({3, 2}), t32({8, 2}));  // rows 3 3 2: the others have 5
  null.all_gather(t32({8, 2}), t32({3, 2}));
  null.broadcast(t32({5}), 0);  // a tree of 3: rank 1 is a leaf
  Request r = null.recv(t32({100}), 2, 1);
  null.wait(r);
  const Traffic& t = null.traffic();
  EXPECT_EQ(t[CommKind::all_reduce].bytes, 4 * (2000 + 2000));
  EXPECT_EQ(t[CommKind::reduce_scatter].bytes, 4 * 10);
  EXPECT_EQ(t[CommKind::all_gather].bytes, 4 * 12);
  EXPECT_EQ(t[CommKind::broadcast].bytes, 0);
  EXPECT_EQ(t[CommKind::recv].bytes, 400);
  EXPECT_EQ(t.bytes_sent(), 16000 + 40 + 48);
  EXPECT_THROW(null.split(0, 0, "x"), CheckFailed);
}

TEST(CommFront, RefusesBrokenContracts) {
  struct Call {
    const char* message;
    std::function<void(Comm&)> call;
  };
  const std::vector<Call> calls = {
      {"all_reduce: i32(4) cannot be summed", [](Comm& c) { c.all_reduce(Tensor::contiguous(nullptr, DType::i32, {4})); }},
      {"all_reduce: f8e4m3(4) cannot be summed", [](Comm& c) { c.all_reduce(Tensor::contiguous(nullptr, DType::f8e4m3, {4})); }},
      {"reduce_scatter: f8e5m2(10) cannot be summed",
       [](Comm& c) {
         c.reduce_scatter(Tensor::contiguous(nullptr, DType::f8e5m2, {3}), Tensor::contiguous(nullptr, DType::f8e5m2, {10}));
       }},
      {"expected a contiguous tensor",
       [](Comm& c) {
         c.all_reduce(columns(t32({4, 4}), 0, 2));
       }},
      {"own is f32(2, 3), rank 1 of 4 has (3, 3) of f32(10, 3)",
       [](Comm& c) {
         c.reduce_scatter(t32({2, 3}), t32({10, 3}));
       }},
      {"own is f32(3, 2), rank 1 of 4 has (3, 3)",
       [](Comm& c) {
         c.all_gather(t32({10, 3}), t32({3, 2}));
       }},
      {"root 4 of 4", [](Comm& c) { c.broadcast(t32({1}), 4); }},
      {"rank 1 to 1 of 4", [](Comm& c) { c.send(t32({1}), 1, 0); }},
      {"tag 1048576", [](Comm& c) { c.recv(t32({1}), 0, kUserTags); }},
      {"reserve() comes before a sum", [](Comm& c) { c.all_reduce(t32({1})); }},
      {"overlaps full",
       [](Comm& c) {
         HostMemory memory;
         const Tensor full = memory.zeros(DType::f32, {8});
         c.all_gather(full, full.rows(1, 3));
       }},
  };
  for (const Call& c : calls) {
    NullComm null(1, 4, "tp");
    const std::string message = message_of([&] { c.call(null); });
    EXPECT_NE(message.find(c.message), std::string::npos) << message;
  }
  const std::string message = message_of([] { run_thread_ranks(2, [](Comm& c) { c.broadcast(t32({3}), 0); }); });
  EXPECT_NE(message.find("f32(3) has no memory"), std::string::npos) << message;
}

}  // namespace
}  // namespace hlat
