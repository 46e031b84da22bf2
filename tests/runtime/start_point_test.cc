// Where a run starts: what is found is looked at again when the run folder is this process's own.
#include "runtime/start_point.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "checkpoint/health_record.h"
#include "comm/self_comm.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

TEST(StartPoint, ACheckpointThatCameBeforeTheLeaseIsNotPassedOver) {
  const test::TempDir dir;
  Config config;
  config.run.dir = dir.path("run");
  SelfComm world;
  const StartPoint start = find_start(config, false, world);
  EXPECT_EQ(start.kind, StartKind::anew);
  EXPECT_NO_THROW(check_unchanged(config, start));
  std::filesystem::create_directories(dir.path("run/checkpoints/step_4"));
  dir.write("run/checkpoints/step_4/index.json", "{}");
  EXPECT_THROW(check_unchanged(config, start), FaultError) << "a restart finds it";
}

TEST(StartPoint, ACheckpointThatWasPutAwayForAnotherIsPutBack) {
  const test::TempDir dir;
  Config config;
  config.run.dir = dir.path("run");
  std::filesystem::create_directories(dir.path("run/checkpoints/step_4.replaced"));
  dir.write("run/checkpoints/step_4.replaced/index.json", "{}");
  SelfComm world;
  const StartPoint start = find_start(config, false, world);
  EXPECT_THROW(check_unchanged(config, start), FaultError) << "the next start goes on with it";
  EXPECT_TRUE(std::filesystem::exists(dir.path("run/checkpoints/step_4/index.json")));
}

void write_checkpoint(const test::TempDir& dir, int64_t step, bool verified) {
  CheckpointIndex index;
  index.run = "0123456789abcdef";
  index.hlat = "1";
  index.created = "2026-11-16T04:45:27Z";
  index.step = step;
  index.config = "{}";
  if (verified) index.records = {to_record({.checked = step, .passed = step})};
  const std::string folder = "run/checkpoints/step_" + std::to_string(step);
  std::filesystem::create_directories(dir.path(folder));
  dir.write(folder + "/index.json", index.save());
}

TEST(StartPoint, ARunGoesBackToWhatWasVerifiedOrWhereThatIsEnoughToWhatIsThere) {
  const test::TempDir dir;
  Config config;
  config.run.dir = dir.path("run");
  for (const int64_t step : {2, 4, 6, 8}) write_checkpoint(dir, step, step == 2);
  SelfComm world;
  const auto goes_back_to = [&](const GoBack& before) { return find_start(config, false, world, before).step(); };
  EXPECT_EQ(goes_back_to({}), 8);
  EXPECT_EQ(goes_back_to({.step = 8}), 2);
  EXPECT_EQ(goes_back_to({.step = 8, .verified = false}), 6);
  EXPECT_THROW(goes_back_to({.step = 2}), UsageError);
  EXPECT_THROW(goes_back_to({.step = 2, .verified = false}), UsageError);
}

}  // namespace
}  // namespace hlat
