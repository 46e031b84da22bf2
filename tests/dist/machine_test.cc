// hlat bench machine on two ranks of a host: links between them, rates as in steps, and what all cores' threads keep of proportional speed.
#include <gtest/gtest.h>

#include <thread>

#include "dist/job.h"
#include "plan/machine_file.h"

namespace hlat::test {
namespace {

TEST(MachineDist, TwoRanksMeasureTheirHost) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one core: there are no more threads to measure";
  Job job(2, {"bench", "machine", "--out", "m.yaml", "--config", "tiny.yaml", "--seconds", "0.1", "device.threads=1", "device.backend=cpu"},
          {"--bind-to", "none"});
  const RunResult r = job.wait(240);
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const Machine m = read_machine(job.dir().path("m.yaml"));
  EXPECT_EQ(m.threads, 1);
  EXPECT_TRUE(m.links.node.bytes_per_s.known());
  EXPECT_NE(m.rates.source.find("as in steps of the config"), std::string::npos) << m.rates.source;
  const ThreadShare& share = m.rates.thread_share;
  EXPECT_GT(share.threads, 1);
  for (const Figure* f : {&share.products, &share.attention, &share.others}) {
    EXPECT_GT(m.need(*f), 0) << f->key;
    EXPECT_LE(m.need(*f), 1) << f->key;
  }
}

}  // namespace
}  // namespace hlat::test
