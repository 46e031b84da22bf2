// How ranks on devices come to exchange tensors: who shares a device, what the config may ask for, and the mesh that is made of it.
#include "runtime/device_comm.h"

#include <gtest/gtest.h>

#include <mutex>

#include "support/layout_run.h"
#include "support/message_of.h"
#include "support/staged_host.h"
#include "support/thread_comm.h"

namespace hlat {
namespace {

Config asking(const std::string& comm) {
  Config c = Layout{.tp = 2, .dp = 2}.config();
  c.parallel.comm = comm;
  return c;
}

// Four ranks, rank r on device ids[r]; what each one's choice comes to, or the first complaint.
std::string choice(const Config& config, const std::vector<std::string>& ids) {
  std::mutex mutex;
  std::string text;
  const std::string error = message_of([&] {
    run_thread_ranks(4, [&](Comm& world) {
      StagedHostBackend backend(ids[static_cast<size_t>(world.rank())]);
      const DeviceComm comm(config, backend, world, 4);
      const std::lock_guard lock(mutex);
      if (world.rank() == 0) text = fmt::format("{} {} {}", static_cast<int>(comm.transport()), comm.sharing(), comm.describe());
    });
  });
  return error == "no exception" ? text : error;
}

TEST(DeviceComm, RanksThatShareADeviceGoThroughHostMemory) {
  for (const char* asked : {"auto", "staged"}) {
    EXPECT_EQ(choice(asking(asked), {"a", "a", "a", "a"}), "1 4 tensors move through host memory: 4 ranks share this GPU");
    EXPECT_EQ(choice(asking(asked), {"a", "b", "a", "c"}), "1 2 tensors move through host memory: 2 ranks share this GPU");
  }
  EXPECT_EQ(choice(asking("staged"), {"a", "b", "c", "d"}), "1 1 tensors move through host memory");
}

TEST(DeviceComm, OnTheCpuThereIsNoChoice) {
  EXPECT_EQ(choice(asking("auto"), {"", "", "", ""}), "0 4 ");
  EXPECT_NE(choice(asking("nccl"), {"", "", "", ""}).find("parallel.comm = nccl: only ranks on GPUs have a choice"), std::string::npos);
}

TEST(DeviceComm, WhatCannotBeIsSaid) {
  EXPECT_NE(choice(asking("nccl"), {"a", "b", "c", "c"}).find("NCCL refuses two ranks on one GPU"), std::string::npos);
  EXPECT_NE(choice(asking("auto"), {"a", "", "b", "c"}).find("some ranks run on a GPU and others on the CPU"), std::string::npos);
}

TEST(DeviceComm, ItsMeshTrains) {
  const Config config = asking("auto");
  LayoutResult result;
  std::mutex mutex;
  run_thread_ranks(4, [&](Comm& world) {
    StagedHostBackend backend;
    Assembly assembly(config, backend, world, 4);
    PlacedModel& model = assembly.build();
    train_rank(2, assembly.plan(), model, {}, result, mutex);
    EXPECT_GT(model.mesh().host_bytes(), 0u);
  });
  const LayoutResult plain = run_layout(config, 2);
  EXPECT_EQ(result.steps[1].loss, plain.steps[1].loss);
  EXPECT_TRUE(result.weights == plain.weights);
}

TEST(DeviceComm, APlanChoosesLikeARun) {
  StagedHostBackend gpu, cpu("");
  EXPECT_EQ(comm_here(asking("auto"), cpu, 4).transport, Transport::host);
  EXPECT_EQ(comm_here(asking("auto"), cpu, 4).sharing, 4);
  EXPECT_EQ(comm_here(asking("auto"), gpu, 1).transport, Transport::host);
  EXPECT_EQ(comm_here(asking("staged"), gpu, 64).transport, Transport::staged);
}

}  // namespace
}  // namespace hlat
