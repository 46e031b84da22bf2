// Sums of host values over ranks: those of an all_reduce, bit by bit, and without its staging.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "comm/null_comm.h"
#include "parallel/mesh.h"
#include "support/comm_checks.h"
#include "support/host_memory.h"
#include "support/thread_comm.h"

namespace hlat {
namespace {

TEST(SumOver, HasTheBitsOfAnAllReduce) {
  for (const int ranks : {1, 2, 3, 7, 12})
    run_thread_ranks(ranks, [](Comm& world) {
      HostMemory memory;
      Region region = memory.region(Purpose::comm, test::staging_bytes(world.size()));
      const auto reserved = world.split(0, world.rank(), "dp");
      reserved->reserve(region);
      for (int k = 0; k < 50; ++k) {
        const double value = std::ldexp(1.0 / (3 + world.rank() + 7 * k), (world.rank() * 13 + k) % 40);
        double sum = value;
        reserved->all_reduce(Tensor::contiguous(&sum, DType::f64, {1}));
        ASSERT_EQ(std::bit_cast<uint64_t>(sum_over(world, value)), std::bit_cast<uint64_t>(sum));
      }
    });
}

TEST(SumOver, ANullGroupHasItsOwnValueOnly) {
  NullComm null(2, 5, "dp");
  EXPECT_EQ(sum_over(null, 1.5), 1.5);
  EXPECT_EQ(null.traffic()[CommKind::all_gather].bytes, 4 * 8);
}

}  // namespace
}  // namespace hlat
