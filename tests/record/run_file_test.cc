// Files about a run as a whole: a later start replaces them, and another run sets them aside.
#include "record/run_file.h"

#include <gtest/gtest.h>

#include "support/temp_dir.h"

namespace hlat {
namespace {

TEST(RunFile, IsReplacedByItsRunAndSetAsideByAnother) {
  const test::TempDir dir;
  dir.write("plan.json.part", "left by a process that died");
  {
    RunFolder folder(dir.path(), "", false);
    put_run_file(folder, "plan.json", "one");
    put_run_file(folder, "plan.json", "two");
    EXPECT_EQ(test::slurp(dir.path("plan.json")), "two");
    EXPECT_FALSE(std::filesystem::exists(dir.path("plan.json.part")));
  }
  const RunFolder another(dir.path(), "", false);
  EXPECT_FALSE(std::filesystem::exists(dir.path("plan.json")));
  EXPECT_EQ(test::slurp(dir.path("previous_1/plan.json")), "two");
}

}  // namespace
}  // namespace hlat
