// Which device a rank takes.
#include "runtime/backends.h"

#include <gtest/gtest.h>

#include "backend/cpu/cpu_backend.h"
#include "base/error.h"
#include "support/message_of.h"

namespace hlat {
namespace {

TEST(Backends, RanksTakeTheUsableGpusInTurn) {
  const GpuChoice gpus{.usable = {1, 3}, .refused = "GPU 0: T4 (sm_75) is below sm_80"};
  EXPECT_EQ(pick_gpu("auto", gpus, 0), 1);
  EXPECT_EQ(pick_gpu("auto", gpus, 1), 3);
  EXPECT_EQ(pick_gpu("cuda", gpus, 2), 1);
  EXPECT_EQ(pick_gpu("cpu", gpus, 0), std::nullopt);
}

TEST(Backends, AutoTakesTheCpuWhereNoGpuCanRunAndCudaNamesTheCard) {
  const GpuChoice gpus{.usable = {}, .refused = "GPU 0: T4 (sm_75) is below sm_80"};
  EXPECT_EQ(pick_gpu("auto", gpus, 0), std::nullopt);
  EXPECT_EQ(message_of([&] { pick_gpu("cuda", gpus, 0); }), "device.backend = cuda: " + gpus.refused);
  EXPECT_THROW(pick_gpu("cuda", {}, 0), UsageError);
  const GpuChoice failing{.usable = {}, .refused = "CUDA does not start: system not yet initialized"};
  EXPECT_EQ(pick_gpu("auto", failing, 0), std::nullopt);
  EXPECT_EQ(message_of([&] { pick_gpu("cuda", failing, 0); }), "device.backend = cuda: " + failing.refused);
  const std::string text = CpuBackend(CpuOptions{.why_not_gpu = gpus.refused}).describe();
  EXPECT_NE(text.find("no GPU is used: GPU 0: T4"), std::string::npos) << text;
}

}  // namespace
}  // namespace hlat
