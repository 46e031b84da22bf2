// Groups whose tensors lie on a device, taken through host memory: every property of a transport, on a device whose memory the host
// cannot touch; the bits of the host path; order and overlap; what they take of the host's memory.
#include "comm/staged_comm.h"

#include <gtest/gtest.h>

#include <future>

#include "comm/comm_queue.h"
#include "comm/null_comm.h"
#include "support/comm_checks.h"
#include "support/device_side.h"
#include "support/fake_device.h"
#include "support/host_memory.h"
#include "support/message_of.h"
#include "support/test_device.h"
#include "support/thread_comm.h"

namespace hlat::test {
namespace {

constexpr double kStagedLimit = 120;  // seconds until a deadlock becomes an error

std::unique_ptr<Comm> staged(std::unique_ptr<Comm> inner, Device& device) {
  return std::make_unique<StagedComm>(std::move(inner), [&device] { return device.make_copy_stream(); });
}

class StagedSizes : public ::testing::TestWithParam<int> {};

TEST_P(StagedSizes, HaveEveryPropertyOfATransport) {
  run_thread_ranks(
      GetParam(),
      [](Comm& world) {
        FakeDevice device;
        DeviceSide comm(staged(world.split(0, world.rank(), "world"), device), device);
        check_all(comm);
      },
      kStagedLimit);
}

INSTANTIATE_TEST_SUITE_P(Ranks, StagedSizes, ::testing::Values(1, 2, 3, 5));

TEST(Cuda, StagedGroupsHaveEveryPropertyOfATransport) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU: ranks that share one are not tested";
  for (const int ranks : {2, 5})
    run_thread_ranks(
        ranks,
        [](Comm& world) {
          const auto backend = cuda_backend(false);
          DeviceSide comm(staged(world.split(0, world.rank(), "world"), backend->device()), backend->device());
          check_all(comm);
        },
        kStagedLimit);
}

// Tensors of several pieces: many rows, rows longer than a piece, uneven shares, fewer rows than ranks.
TEST(StagedComm, LargeTensorsHaveTheBitsOfTheHostPath) {
  constexpr int64_t kElements = static_cast<int64_t>(kStagedPiece / sizeof(float));
  const std::vector<Shape> shapes = {{3 * kElements + 5}, {1000, 4099}, {7, kElements / 2 + 3}, {2, kElements + 1}, {1, kElements}};
  run_thread_ranks(
      3,
      [&](Comm& world) {
        HostMemory memory;
        Region region = memory.region(Purpose::comm, staging_bytes(world.size())), none = memory.region(Purpose::comm, 0);
        const auto plain = world.split(0, world.rank(), "plain");
        plain->reserve(region);
        FakeDevice device;
        DeviceSide comm(staged(world.split(0, world.rank(), "staged"), device), device);
        comm.reserve(none);
        for (const Shape& shape : shapes) {
          const Tensor input = memory.zeros(DType::f32, shape);
          for (int64_t i = 0; i < input.numel(); ++i)
            input.as<float>()[i] = static_cast<float>((i * 7919 + world.rank() * 104729) % 65521) / static_cast<float>(1 + i % 97);
          const Part mine = part_of(shape.dim[0], world.rank(), world.size());
          Shape own_shape = shape;
          own_shape.dim[0] = mine.count;
          std::array<std::vector<std::vector<float>>, 2> results;
          for (Comm* c : {plain.get(), static_cast<Comm*>(&comm)}) {
            const auto fresh = [&](const Shape& s, const float* from) {
              std::vector<float> v(static_cast<size_t>(s.numel()));
              if (from != nullptr) std::copy(from, from + s.numel(), v.begin());
              return v;
            };
            const auto view = [](std::vector<float>& v, const Shape& s) { return Tensor::contiguous(v.data(), DType::f32, s); };
            std::vector<float> sum = fresh(shape, input.as<float>()), full = sum, everywhere = sum, gathered = fresh(shape, nullptr),
                               own = fresh(own_shape, nullptr);
            c->all_reduce(view(sum, shape));
            c->reduce_scatter(view(own, own_shape), view(full, shape));
            c->all_gather(view(gathered, shape), view(own, own_shape));
            c->broadcast(view(everywhere, shape), 1);
            results[c == plain.get() ? 0 : 1] = {sum, own, full, gathered, everywhere};
          }
          for (size_t i = 0; i < results[0].size(); ++i) EXPECT_TRUE(results[0][i] == results[1][i]) << shape.str() << " result " << i;
          EXPECT_TRUE(results[0][0] == results[0][3]) << "a sum is its gathered shares";
        }
      },
      kStagedLimit);
}

// The device is still busy with later work when the queue's operation ends: it waited for earlier work only.
TEST(StagedComm, OnAQueueOperationsOverlapWithTheDevicesWork) {
  run_thread_ranks(
      2,
      [](Comm& world) {
        FakeDevice device;
        Region none;
        const auto comm = staged(world.split(0, world.rank(), "dp"), device);
        comm->reserve(none);
        const std::vector<float> mine(1000, static_cast<float>(1 + world.rank()));
        std::byte* p = device.allocate(mine.size() * sizeof(float));
        const Tensor t = Tensor::contiguous(p, DType::f32, {static_cast<int64_t>(mine.size())});
        std::promise<void> gate;
        {
          CommQueue queue(*comm);
          device.work().enqueue([] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); });
          device.upload(t, mine.data());
          const uint64_t ticket = queue.submit([t](Comm& c) { c.all_reduce(t); });
          device.work().wait_for(gate.get_future().share());
          for (int ms = 0; queue.busy_s() == 0 && ms < 30000; ++ms) std::this_thread::sleep_for(std::chrono::milliseconds(1));
          EXPECT_GT(queue.busy_s(), 0) << "the operation has not ended while the device's later work goes on";
          gate.set_value();
          queue.wait(ticket);
        }
        comm->all_reduce(t);  // in order again
        std::vector<float> sum(mine.size());
        device.download(sum.data(), t);
        device.free(p);
        EXPECT_EQ(sum, std::vector<float>(sum.size(), 6.0F));
      },
      kStagedLimit);
}

TEST(StagedComm, TakesOfTheHostWhatTheDryRunCounts) {
  run_thread_ranks(
      4,
      [](Comm& world) {
        FakeDevice device;
        const auto comm = staged(world.split(0, world.rank(), "pp"), device);
        Region region = Region::measuring(Purpose::comm), planned = Region::measuring(Purpose::comm);
        NullComm null(world.rank(), world.size(), "pp", Transport::staged);
        comm->reserve(region);
        null.reserve(planned);
        EXPECT_EQ(comm->host_bytes(), null.host_bytes());
        comm->reserve_messages(1001, 5);
        null.reserve_messages(1001, 5);
        EXPECT_EQ(comm->host_bytes(), null.host_bytes());
        EXPECT_GT(comm->host_bytes(), kStagedPiece);
        EXPECT_EQ(region.high_water() + planned.high_water(), 0u) << "nothing of the device's memory";
        double one = 1;
        comm->host().all_reduce(Tensor::contiguous(&one, DType::f64, {1}));  // a value of the host
        EXPECT_EQ(one, 4);
      },
      kStagedLimit);
}

TEST(StagedComm, AMessageWithoutRoomIsABug) {
  const auto body = [](Comm& world) {
    FakeDevice device;
    const auto comm = staged(world.split(0, world.rank(), "pp"), device);
    comm->reserve_messages(64, 1);
    if (world.rank() == 1) return;
    std::byte* p = device.allocate(1024);
    const std::string large = message_of([&] { comm->recv(Tensor::contiguous(p, DType::f32, {100}), 1, 0); });
    EXPECT_NE(large.find("a message of 400 bytes, room is reserved for 1 of 256"), std::string::npos) << large;
  };
  run_thread_ranks(2, body, kStagedLimit);
}

// A peer that fails ends a call that waits for it; the memory under way outlives it.
TEST(StagedComm, AFailedPeerEndsTheCall) {
  const auto body = [](Comm& world) {
    FakeDevice device;
    Region none;
    const auto comm = staged(world.split(0, world.rank(), "tp"), device);
    comm->reserve(none);
    comm->reserve_messages(64, 2);
    if (world.rank() == 1) throw std::runtime_error("rank 1 broke");
    std::byte* p = device.allocate(64);
    const Tensor t = Tensor::contiguous(p, DType::f32, {16});
    comm->send(t, 1, 0);
    comm->all_reduce(t);
  };
  EXPECT_EQ(message_of([&] { run_thread_ranks(2, body, kStagedLimit); }), "rank 1 broke");
}

}  // namespace
}  // namespace hlat::test
