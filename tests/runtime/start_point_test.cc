// Where a run starts: what is found is looked at again when the run folder is this process's own.
#include "runtime/start_point.h"

#include <gtest/gtest.h>

#include "base/error.h"
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

}  // namespace
}  // namespace hlat
