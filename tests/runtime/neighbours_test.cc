// Ranks find out who is on their host.
#include "runtime/neighbours.h"

#include <gtest/gtest.h>
#include <sched.h>

#include "support/thread_comm.h"

namespace hlat {
namespace {

TEST(Neighbours, AreTheRanksOfOneHost) {
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  run_thread_ranks(5, [&](Comm& world) {
    const bool even = world.rank() % 2 == 0;
    const Neighbours n = find_local_ranks(world, even ? "even" : "odd", "");
    EXPECT_EQ(n.ranks, even ? (std::vector{0, 2, 4}) : (std::vector{1, 3}));
    EXPECT_EQ(n.local_rank, world.rank() / 2);
    EXPECT_EQ(n.cores, CPU_COUNT(&set));
    EXPECT_EQ(n.threads, std::max(1, CPU_COUNT(&set) / static_cast<int>(n.ranks.size())));
    EXPECT_EQ(n.advice, "");
  });
}

}  // namespace
}  // namespace hlat
