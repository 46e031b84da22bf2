// NCCL between two processes, started by mpirun -n 2. Where they share a GPU each says that it is on a host of its own: NCCL then
// does not refuse, and talks through the loopback network. A sum of two numbers has one value in any order, so everything, whole
// training steps included, must have the bits of the path through host memory.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

#include "base/format.h"
#include "comm/mpi_comm.h"
#include "comm/nccl/nccl_comm.h"
#include "comm/staged_comm.h"
#include "support/comm_checks.h"
#include "support/device_side.h"
#include "support/host_memory.h"
#include "support/layout_run.h"
#include "support/message_of.h"
#include "support/test_device.h"

namespace hlat::test {
namespace {

Comm* world = nullptr;  // MPI's, from main to its end

class TwoRanks : public testing::Test {
 protected:
  void SetUp() override { world->barrier(); }
  void TearDown() override { world->barrier(); }
  NcclOptions options(double limit_s) const { return {backend_->index(), backend_->stream(), limit_s}; }

  std::unique_ptr<CudaBackend> backend_ = std::make_unique<CudaBackend>(CudaOptions{.device = world->rank() % cuda_device_count()});
};

TEST_F(TwoRanks, CollectivesHaveTheirBits) {
  NcclRank rank(options(60));
  HostMemory memory;
  Region region = memory.region(Purpose::comm, staging_bytes(2));
  const size_t before = backend_->device().memory_available();
  DeviceSide comm(rank.make(world->split(0, world->rank(), "tp")), backend_->device());
  comm.reserve(region);
  check_sums(comm);
  check_gathers(comm);
  check_split(comm);
  const size_t after = backend_->device().memory_available();
  if (world->rank() == 0)
    fmt::print("{}: a group of two and its first operations took {} of GPU memory on both ranks together\n", rank.describe(),
               format_bytes(before > after ? before - after : 0));
}

// On each channel in order, many under way, in both directions, and channels in any order.
TEST_F(TwoRanks, MessagesOfAChannelComeInOrder) {
  NcclRank rank(options(30));
  const auto comm = rank.make(world->split(0, world->rank(), "pp"));
  comm->open_ring();
  Device& device = backend_->device();
  const int peer = 1 - world->rank();
  const std::vector<int64_t> sizes = {1, 1000, 300000, 7};
  constexpr size_t kRoom = 2 << 20;
  std::byte* memory = device.allocate(4 * sizes.size() * kRoom);  // now: not while a message waits for its peer
  std::vector<Tensor> sent, got;
  const auto value = [&](int from, size_t i) { return static_cast<float>(100 * from + static_cast<int>(i)); };
  for (size_t i = 0; i < 2 * sizes.size(); ++i) {
    const int64_t n = sizes[i % sizes.size()];
    sent.push_back(Tensor::contiguous(memory + 2 * i * kRoom, DType::f32, {n}));
    got.push_back(Tensor::contiguous(memory + (2 * i + 1) * kRoom, DType::f32, {n}));
    device.upload(sent.back(), std::vector<float>(static_cast<size_t>(n), value(world->rank(), i)).data());
  }
  const auto tag = [&](size_t i) { return (i < sizes.size() ? 0 : kChannelTags) + static_cast<int>(i); };
  std::vector<Request> requests;
  for (size_t i = 0; i < sent.size(); ++i) requests.push_back(comm->send(sent[i], peer, tag(i)));
  for (const size_t first : {sizes.size(), size_t{0}})  // channel 1 first
    for (size_t i = first; i < first + sizes.size(); ++i) requests.push_back(comm->recv(got[i], peer, tag(i)));
  for (size_t i = requests.size(); i-- > 0;) comm->wait(requests[i]);
  for (size_t i = 0; i < got.size(); ++i) {
    std::vector<float> values(static_cast<size_t>(got[i].numel()));
    device.download(values.data(), got[i]);
    EXPECT_EQ(values, std::vector<float>(values.size(), value(peer, i))) << "message " << i;
  }
  comm->check();
  device.free(memory);
}

LayoutResult train(const Layout& layout, CudaBackend& backend, NcclRank* nccl) {
  const Config config = layout.config();
  const Mesh mesh(config, world->rank(), [&](const AxisGroup& g) -> std::unique_ptr<Comm> {
    auto comm = world->split(g.color, g.rank, g.name);
    if (nccl != nullptr) return nccl->make(std::move(comm));
    return std::make_unique<StagedComm>(std::move(comm), [&] { return backend.device().make_copy_stream(); });
  });
  LayoutResult result;
  std::mutex mutex;
  Region measuring;
  const auto scratch = backend.make_ops(measuring);
  const RankPlan plan =
      dry_run(config, {.scratch_model = scratch.get(), .transport = nccl != nullptr ? Transport::nccl : Transport::staged}, world->rank());
  PlacedModel model(config, precision_of(config), mesh, backend, &plan.memory, ParamUse::training);
  train_rank(2, plan, model, {}, result, mutex);
  return result;
}

TEST_F(TwoRanks, TrainingHasTheBitsOfTheHostPath) {
  using enum PrecisionKind;
  NcclRank rank(options(60));
  for (const Layout& l :
       {Layout{.tp = 2}, Layout{.tp = 2, .sp = true, .kv = 1, .tied = true}, Layout{.dp = 2}, Layout{.dp = 2, .zero1 = true},
        Layout{.pp = 2, .tied = true}, Layout{.pp = 2, .chunks = 2, .recompute = "full"}, Layout{.tp = 2, .sp = true, .precision = mixed},
        Layout{.dp = 2, .zero1 = true, .precision = bf16_sr}, Layout{.pp = 2, .chunks = 2, .precision = mixed}}) {
    const auto start = std::chrono::steady_clock::now();
    const LayoutResult by_nccl = train(l, *backend_, &rank);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    const LayoutResult by_host = train(l, *backend_, nullptr);
    if (world->rank() == 0) fmt::print("{}: {:.2f} s by NCCL\n", l.name(), took.count());
    for (size_t i = 0; i < by_host.steps.size(); ++i) {
      EXPECT_EQ(by_nccl.steps[i].loss, by_host.steps[i].loss) << l.name();
      EXPECT_EQ(by_nccl.steps[i].grad_norm, by_host.steps[i].grad_norm) << l.name();
    }
    EXPECT_TRUE(by_nccl.weights == by_host.weights) << l.name();
  }
}

// Rank 1 never comes. The watch lets the device go, and says who waited for what.
TEST_F(TwoRanks, APeerThatNeverComesEndsTheRun) {
  NcclRank rank(options(2));
  Region region = Region::measuring(Purpose::comm);
  const auto comm = rank.make(world->split(0, world->rank(), "dp"));
  comm->reserve(region);
  std::byte* p = backend_->device().allocate(1 << 20);
  const Tensor t = Tensor::contiguous(p, DType::f32, {1 << 18});
  const std::vector<float> values(1 << 18, 1.0F);
  backend_->device().upload(t, values.data());
  comm->all_reduce(t);  // connects both
  if (world->rank() == 0) {
    comm->all_reduce(t);
    std::vector<float> got(values.size());
    backend_->device().download(got.data(), t);  // returns
    EXPECT_EQ(message_of([&] { comm->check(); }), "dp all_reduce on rank 0 of 2: waited 2 s for its peers");
    EXPECT_NE(message_of([&] { comm->all_reduce(t); }), "no exception");
  }
  world->barrier();
  if (world->rank() == 1) comm->cancel();
  backend_->device().free(p);
}

}  // namespace
}  // namespace hlat::test

int main(int argc, char** argv) {
  using namespace hlat;
  testing::InitGoogleTest(&argc, argv);
  MpiSession session({.time_limit_s = 60});
  std::string why;
  if (!has_gpu() || !NcclRank::available(why) || session.world().size() != 2) {
    fmt::print("NCCL is not tested: {}\n", !has_gpu() ? "no GPU" : !why.empty() ? why : "to be started by mpirun -n 2");
    return has_gpu() ? 1 : 0;
  }
  if (cuda_device_count() == 1) {
    setenv("NCCL_HOSTID", fmt::format("rank {}", session.world().rank()).c_str(), 1);
    setenv("NCCL_SOCKET_IFNAME", "lo", 1);
    setenv("NCCL_IB_DISABLE", "1", 1);
  }
  test::world = &session.world();
  return RUN_ALL_TESTS();
}
