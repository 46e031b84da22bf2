// Who decides how threads wait at a barrier.
#include "base/thread_waiting.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace hlat {
namespace {

bool undecided(const std::map<std::string, std::string>& environment) {
  return waiting_is_undecided([&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

TEST(ThreadWaiting, IsBoundedUnlessSomebodySaidHow) {
  EXPECT_TRUE(undecided({}));
  EXPECT_TRUE(undecided({{"OMP_NUM_THREADS", "2"}}));
  EXPECT_FALSE(undecided({{"OMP_WAIT_POLICY", "active"}}));
  EXPECT_FALSE(undecided({{"GOMP_SPINCOUNT", "infinite"}}));
  EXPECT_FALSE(undecided({{kSpinVariable, kSpinCount}})) << "the program would start itself for ever";
}

}  // namespace
}  // namespace hlat
