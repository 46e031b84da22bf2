// hlat bench machine: the file that it writes is a machine file; what it refuses.
#include <gtest/gtest.h>

#include "plan/machine_file.h"
#include "support/paths.h"
#include "support/run_binary.h"
#include "support/temp_dir.h"

namespace hlat::test {
namespace {

TEST(MachineCli, WritesAMachineFile) {
  const TempDir dir;
  const std::string out = dir.path("here.yaml");
  const std::vector<std::string> args = {
      "bench", "machine", "--out", out, "--seconds", "0.1", "--dir", dir.path(), "device.threads=1", "device.backend=cpu"};
  const RunResult r = run_binary(args);
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const Machine m = read_machine(out);
  EXPECT_EQ(m.name, "here");
  EXPECT_EQ(m.threads, 1);
  EXPECT_GE(m.cores, 1);
  EXPECT_GT(m.need(m.peak_f32), 1e8);
  EXPECT_GT(m.need(m.disk_write), 0);
  EXPECT_FALSE(m.rates.memory_ops.empty());
  EXPECT_FALSE(m.rates.source.empty());
  EXPECT_FALSE(m.links.node.bytes_per_s.known());  // one rank has no links
  const RunResult again = run_binary(args);
  EXPECT_EQ(again.exit_code, 2) << again.err;
  EXPECT_NE(again.err.find("is there already"), std::string::npos) << again.err;
}

}  // namespace
}  // namespace hlat::test
