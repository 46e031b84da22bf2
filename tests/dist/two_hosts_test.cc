// Two hosts that are namespaces of this machine (two_hosts.sh): the same training as on one, over TCP; a broken link ends the run.
#include <gtest/gtest.h>

#include <cstdlib>

#include "dist/job.h"
#include "support/paths.h"

namespace hlat::test {
namespace {

constexpr int kRefused = 77;

// Words before mpirun: everything runs on the first host, and mpirun starts ranks on both.
Job::Words on_two_hosts() {
  const std::string binary_folder = std::filesystem::path(hlat_binary()).parent_path();
  return {source_path("tests/dist/two_hosts.sh"), source_path("."), binary_folder, "--"};
}

TEST(TwoHosts, TrainAsOneOverTcp) {
  const Job::Words words = tiny_run({"parallel.zero1=true"}), launcher = {"--bind-to", "none", "--map-by", "node"};
  Job apart(2, words, launcher, {}, on_two_hosts());
  const RunResult r = apart.wait(120);
  if (r.exit_code == kRefused) GTEST_SKIP() << r.err;
  ASSERT_EQ(r.exit_code, 0) << r.err;
  Job together(2, words, {"--bind-to", "none"});
  ASSERT_EQ(together.wait(120).exit_code, 0);
  const auto two = apart.metrics(), one = together.metrics();
  ASSERT_EQ(two.size(), 5u);
  ASSERT_EQ(one.size(), two.size());
  for (size_t i = 0; i < one.size(); ++i)
    for (const char* key : {"loss", "grad_norm", "param_norm"})
      EXPECT_EQ(two[i][key].dump(), one[i][key].dump()) << key << " of step " << i + 1;
  // The card between the hosts carried what the plan says that a rank sends over dp.
  Job plan(0, {"plan", "--config", "tiny.yaml", "--json", "parallel.zero1=true", "parallel.dp=2"});
  const RunResult planned = plan.wait();
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  const double sent_per_step = nlohmann::json::parse(planned.out)["stages"][0]["bytes_sent_per_rank"]["dp"];
  const double sent = std::stod(slurp(apart.dir().path("sent")));
  EXPECT_GT(sent_per_step, 1e5);
  EXPECT_GE(sent, 5 * sent_per_step);
}

// Every rank ends within the time limit, and the peer that is cut off is named. mpirun itself waits for its daemon on the other host, which
// it can no longer reach, until it is told to end.
TEST(TwoHosts, ABrokenLinkEndsAllRanksAndThePeerIsNamed) {
  Job job(2, tiny_run({"train.steps=1000000", "parallel.timeout_s=3"}), {"--bind-to", "none", "--map-by", "node"}, {}, on_two_hosts());
  try {
    job.await_step(1);
  } catch (const std::exception&) {
    const RunResult r = job.wait();
    if (r.exit_code == kRefused) GTEST_SKIP() << r.err;
    throw;
  }
  ASSERT_EQ(job.ranks().size(), 2u);
  const std::string cut = "nsenter --target " + slurp(job.dir().path("two.pid"));
  ASSERT_EQ(std::system((cut.substr(0, cut.find('\n')) + " --net ip link set hlat0 down").c_str()), 0);
  EXPECT_TRUE(within(3 + 10, [&] { return job.ranks().empty(); }));
  job.terminate();
  const RunResult r = job.wait(20);
  EXPECT_NE(r.exit_code, 0);
  EXPECT_NE(r.err.find("hlat: rank 0 of 2 on hlat-one, step "), std::string::npos) << r.err;
  EXPECT_NE(r.err.find("waited 3 s for rank 1"), std::string::npos) << r.err;
}

}  // namespace
}  // namespace hlat::test
