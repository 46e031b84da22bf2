// The memory of every rank counts, not that of rank 0 alone.
#include "runtime/fit_check.h"

#include <gtest/gtest.h>

#include "backend/cpu/cpu_backend.h"
#include "base/error.h"
#include "config/resolve.h"
#include "plan/micro_batch.h"
#include "runtime/auto_micro_batch.h"
#include "support/message_of.h"
#include "support/thread_comm.h"

namespace hlat {
namespace {

// A device of a rank's own with only so much memory.
class SmallBackend final : public Backend {
 public:
  SmallBackend(int rank, size_t available) : id_("device " + std::to_string(rank)), device_(available) {}
  Device& device() override { return device_; }
  std::unique_ptr<Ops> make_ops(Region& temp) override { return cpu_.make_ops(temp); }
  std::string describe() const override { return cpu_.describe(); }
  std::string device_id() const override { return id_; }

 private:
  class SmallDevice final : public Device {
   public:
    explicit SmallDevice(size_t available) : available_(available) {}
    std::byte* allocate(size_t bytes) override { return cpu_.allocate(bytes); }
    void free(std::byte* p) override { cpu_.free(p); }
    void upload(Tensor dst, const void* host) override { cpu_.upload(dst, host); }
    void download(void* host, Tensor src) override { cpu_.download(host, src); }
    size_t memory_available() const override { return available_; }

   private:
    CpuDevice cpu_;
    size_t available_;
  };
  std::string id_;
  SmallDevice device_;
  CpuBackend cpu_{CpuOptions{}};
};

Config two_replicas() {
  Config c;
  c.train.global_batch = 16;
  c.train.seq_len = 64;
  return with_ranks(c, 2);
}

TEST(FitCheck, NamesTheRankThatDoesNotFitOnAllRanks) {
  const Config config = two_replicas();
  run_thread_ranks(2, [&](Comm& world) {
    const RankPlan plan = dry_run(config, {}, world.rank());
    const double enough = static_cast<double>(plan.memory.total()) + 1e9;
    const Fit fit{.device = "this machine", .available = world.rank() == 1 ? 1000.0 : enough, .on_host = true};
    const std::string host = world.rank() == 1 ? "node-b" : "node-a";
    const std::string text = message_of([&] { check_fit(config, plan, {}, fit, world, host); });
    EXPECT_EQ(text.find("rank 1 on node-b: does not fit on this machine"), 0u) << text;
    if (world.rank() == 0) {
      EXPECT_NE(text.find("1000 B available"), std::string::npos) << text;
    }
    const Fit roomy{.device = "this machine", .available = enough, .on_host = true};
    check_fit(config, plan, {}, roomy, world, host);
  });
}

TEST(AutoMicroBatch, AllRanksTakeWhatFitsTheSmallest) {
  Config config = two_replicas();
  config.train.micro_batch = 0;
  config.parallel.comm = "staged";
  Config four = config;
  four.train.micro_batch = 4;
  run_thread_ranks(2, [&](Comm& world) {
    SmallBackend roomy(world.rank(), size_t{64} << 30);
    Region measuring;
    const auto ops = roomy.make_ops(measuring);
    const size_t room = dry_run(four, {.scratch_model = ops.get(), .transport = Transport::staged}).memory.total();
    const auto enough = static_cast<size_t>(static_cast<double>(room) / kChosenShare) + 1;
    SmallBackend backend(world.rank(), world.rank() == 1 ? enough : size_t{64} << 30);
    EXPECT_EQ(with_micro_batch(config, backend, world, 2).train.micro_batch, 4);
    EXPECT_EQ(with_micro_batch(four, backend, world, 2), four) << "a number stays";
    EXPECT_EQ(with_micro_batch(config, backend, world, 2, 2).train.micro_batch, 2) << "that of the saved run";
    EXPECT_EQ(with_micro_batch(config, backend, world, 2, 8).train.micro_batch, 4) << "it fits on rank 0 alone";
  });
}

}  // namespace
}  // namespace hlat
