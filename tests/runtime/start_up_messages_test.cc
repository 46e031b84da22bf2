// What ranks tell each other before the first step: messages per rank grow with the logarithm of their number.
#include <gtest/gtest.h>

#include <bit>

#include "cli/ranks.h"
#include "runtime/device_comm.h"
#include "runtime/neighbours.h"
#include "runtime/open_data.h"
#include "support/layout_run.h"
#include "support/staged_host.h"
#include "support/thread_comm.h"

namespace hlat {
namespace {

// All that `hlat train` exchanges over its world and mesh before it trains; returns the messages that this rank sent.
int64_t start_up(Comm& world, const Config& config, Backend& backend) {
  const Neighbours here = find_local_ranks(world, fmt::format("node-{}", world.rank() / 8), "srun");
  check_same(world, config);
  const auto data = open_data(config, world, here.ranks, 1);
  DeviceComm comm(config, backend, world, static_cast<int>(here.ranks.size()));
  const Mesh mesh = comm.make_mesh();
  EXPECT_EQ(sum_over(mesh, 1.0), world.size());
  EXPECT_EQ(sum_over(mesh.along(Axis::dp), 1.0), mesh.shape().dp);
  world.barrier();
  int64_t messages = world.traffic().messages;
  for (const auto& axis : mesh.comms()) messages += axis->traffic().messages;
  return messages;
}

class StartUp : public testing::TestWithParam<int> {};

// Seven exchanges over the world, six splits, and two within the readers of a host: each takes one message at most for each doubling of
// the ranks.
TEST_P(StartUp, MessagesGrowWithTheLogarithm) {
  const int ranks = GetParam();
  const Config config = Layout{.tp = 4, .pp = 2, .dp = ranks / 8, .vocab = 512}.config();
  StagedHostBackend backend("");
  std::vector<int64_t> sent(static_cast<size_t>(ranks));
  run_thread_ranks(ranks, [&](Comm& world) { sent[static_cast<size_t>(world.rank())] = start_up(world, config, backend); });
  const int64_t rounds = std::bit_width(static_cast<unsigned>(ranks - 1)), most = *std::max_element(sent.begin(), sent.end());
  RecordProperty("messages", static_cast<int>(most));  // of --gtest_output
  EXPECT_LE(most, 14 * rounds);
  EXPECT_GE(most, 8 * rounds) << "not all is counted";
}

INSTANTIATE_TEST_SUITE_P(Ranks, StartUp, testing::Values(16, 64, 128));

}  // namespace
}  // namespace hlat
