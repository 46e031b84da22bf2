// hlat launch on two hosts that are namespaces of this machine (two_hosts.sh): faults on the other host, runs that go on with fewer ranks
// and grow back, spare hosts, and a launcher whose host is gone.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>

#include "dist/job.h"
#include "support/paths.h"

namespace hlat::test {
namespace {

constexpr int kNotPermitted = 77;
constexpr int64_t kHostSteps = 14;

// Words before `hlat launch`, which runs on hlat-one. ./remote is ./agent of two_hosts.sh, but hlat-two does not answer between the fault
// `host`, or the file `gone`, and the fault `kill`.
Job::Words on_hosts(const Job::Words& folders = {}) {
  const std::string binary_folder = std::filesystem::path(hlat_binary()).parent_path();
  Job::Words words{source_path("tests/dist/two_hosts.sh"), source_path("."), binary_folder};
  words.insert(words.end(), folders.begin(), folders.end());
  for (const char* word : {"--", "sh", "-c",
                           R"(cat >remote <<'END'
#!/bin/sh
[ ! -e gone ] || exit 1
if grep -qs '"host rank' run/faults.jsonl && ! grep -qs '"kill rank' run/faults.jsonl; then exit 1; fi
exec ./agent "$@"
END
chmod +x remote
exec "$@")",
                           "sh"})
    words.emplace_back(word);
  return words;
}

Job::Words on_hosts_words(const std::string& hosts, const std::string& inject, const Job::Words& more = {}) {
  Job::Words words{"launch",
                   "--config",
                   "tiny.yaml",
                   "run.dir=run",
                   "launch.hosts=" + hosts,
                   "launch.remote=./remote",
                   "train.steps=" + std::to_string(kHostSteps),
                   "train.global_batch=12",
                   "checkpoint.every=2",
                   "launch.hang_s=6",
                   "launch.backoff_s=1",
                   "launch.patience_s=2"};
  if (!inject.empty()) words.push_back("fault.inject=" + inject);
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::vector<std::string> meshes(const Job& job) {
  std::vector<std::string> out;
  for (const auto& e : launch_events(job, "attempt")) out.push_back(e["mesh"]);
  return out;
}

// What the ledger of the whole run says: documents, rows and tokens by source. Nothing may be lost or read twice.
std::string ledger(const Job& job) {
  const std::string log = job.log();
  const size_t begin = log.rfind("read\n");
  return begin == std::string::npos ? "no ledger in: " + log : log.substr(begin, log.find("\n\n", begin) - begin);
}

// Words for a run on real files, which lie in `folder`.
Job::Words on_texts(const TempDir& folder) {
  EXPECT_EQ(run_binary({"data", "sample", "--out", folder.path("data"), "--documents", "200"}).exit_code, 0);
  return {"data.tokenizer=" + folder.path("data/tokenizer.json"), "data.sources[0].path=" + folder.path("data/stories.jsonl"),
          "model.vocab=auto"};
}

struct Elastic {
  const char* hosts;
  const char* inject;
  std::vector<std::string> meshes;
  const char* idle;  // what the log says of slots without a rank
  Job::Words more;
};

class ElasticRuns : public testing::TestWithParam<Elastic> {};

TEST_P(ElasticRuns, GoOnWithFewerRanksAndGrowBack) {
  const Elastic& p = GetParam();
  const TempDir data;
  Job::Words more = on_texts(data);
  more.insert(more.end(), p.more.begin(), p.more.end());
  Job struck(0, on_hosts_words(p.hosts, p.inject, more), {}, {}, on_hosts({data.path()}));
  const RunResult r = struck.wait(180);
  if (r.exit_code == kNotPermitted) GTEST_SKIP() << r.err;
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(meshes(struck), p.meshes) << r.err;
  EXPECT_NE(r.err.find(p.idle), std::string::npos) << r.err;
  Job calm(0, on_hosts_words(p.hosts, "", more), {}, {}, on_hosts({data.path()}));
  ASSERT_EQ(calm.wait(180).exit_code, 0);
  EXPECT_EQ(meshes(calm), std::vector<std::string>{p.meshes.front()});
  const auto metrics = struck.metrics(), expected = calm.metrics();
  ASSERT_EQ(metrics.size(), static_cast<size_t>(kHostSteps));
  ASSERT_EQ(expected.size(), metrics.size());
  for (size_t i = 0; i < metrics.size(); ++i) {
    EXPECT_EQ(metrics[i]["step"], i + 1);
    const double loss = metrics[i]["loss"], calm_loss = expected[i]["loss"];
    EXPECT_NEAR(loss, calm_loss, 2e-5 * calm_loss) << i;  // f32, sums over another number of ranks
  }
  EXPECT_EQ(ledger(struck), ledger(calm));
  EXPECT_NE(ledger(calm).find("none lost to packing"), std::string::npos) << ledger(calm);
}

INSTANTIATE_TEST_SUITE_P(Meshes, ElasticRuns,
                         testing::Values(Elastic{"hlat-one:3,hlat-two:1",
                                                 "host rank=3 step=5; kill rank=0 step=9",
                                                 {"tp 1, pp 1, dp 4", "tp 1, pp 1, dp 3", "tp 1, pp 1, dp 4"},
                                                 "dp 3",
                                                 {}},
                                         Elastic{"hlat-one:3,hlat-two:1",
                                                 "host rank=3 step=5; kill rank=0 step=9",
                                                 {"tp 2, pp 1, dp 2", "tp 2, pp 1, dp 1", "tp 2, pp 1, dp 2"},
                                                 "idle: 1 slot on hlat-one",
                                                 {"parallel.tp=2", "launch.ranks=4"}}));

// Ranks that have no batches left to skip end as bad input does, but not for lack of memory: fewer hosts are no reason to wait for more.
TEST(LaunchHosts, WhatFewerHostsAreNotTheReasonForIsAStop) {
  Job job(0, on_hosts_words("hlat-one:3,hlat-two:1", "host rank=3 step=5; nan rank=0 step=9", {"loss.skips=0"}), {}, {}, on_hosts());
  const RunResult r = job.wait(120);
  if (r.exit_code == kNotPermitted) GTEST_SKIP() << r.err;
  EXPECT_EQ(r.exit_code, 5) << r.err;
  EXPECT_EQ(meshes(job), (std::vector<std::string>{"tp 1, pp 1, dp 4", "tp 1, pp 1, dp 3"})) << r.err;
  EXPECT_NE(r.err.find("loss.skips = 0 allows no more"), std::string::npos) << r.err;
}

// Spares are used at once, without patience; the mesh stays and with it the bits.
TEST(LaunchHosts, ASpareTakesThePlaceOfAHost) {
  const Job::Words more{"launch.spares=1", "launch.patience_s=600", "launch.ranks=2"};
  Job struck(0, on_hosts_words("hlat-two:2,hlat-one:2", "host rank=1 step=5", more), {}, {}, on_hosts());
  const RunResult r = struck.wait(120);
  if (r.exit_code == kNotPermitted) GTEST_SKIP() << r.err;
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const auto attempts = launch_events(struck, "attempt");
  ASSERT_EQ(attempts.size(), 2u) << r.err;
  EXPECT_EQ(attempts[0]["hosts"], nlohmann::json::array({"hlat-two"}));
  EXPECT_EQ(attempts[1]["hosts"], nlohmann::json::array({"hlat-one"}));
  const auto faults = launch_events(struck, "fault");
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0]["cause"], "dead_host");
  EXPECT_EQ(faults[0]["host"], "hlat-two");
  EXPECT_EQ(struck.metrics().size(), static_cast<size_t>(kHostSteps));
}

// A rank on the other host: named with its host.
TEST(LaunchHosts, AFaultOnTheOtherHostIsNamed) {
  for (const auto& [inject, cause] : {std::pair{"stop rank=3 step=5", "hang"}, {"crash rank=2 step=5", "dead_rank"}}) {
    Job job(0, on_hosts_words("hlat-one:2,hlat-two:2", inject, {"parallel.tp=2"}), {}, {}, on_hosts());
    const RunResult r = job.wait(120);
    if (r.exit_code == kNotPermitted) GTEST_SKIP() << r.err;
    ASSERT_EQ(r.exit_code, 0) << r.err;
    const auto faults = launch_events(job, "fault");
    ASSERT_EQ(faults.size(), 1u) << r.err;
    EXPECT_EQ(faults[0]["cause"], cause);
    EXPECT_EQ(faults[0]["host"], "hlat-two");
    EXPECT_EQ(faults[0]["step"], 5);
  }
}

// The host of the launcher is gone without a word: nothing arrives from there any more. The ranks of the other host save nothing, but end,
// and so does their agent.
TEST(LaunchHosts, WithoutTheLaunchersHostTheRanksOfOthersEnd) {
  Job job(0, on_hosts_words("hlat-two:2", "", {"train.steps=1000000"}), {}, {}, on_hosts());
  try {
    job.await_step(3);
  } catch (const std::exception&) {
    const RunResult r = job.wait();
    if (r.exit_code == kNotPermitted) GTEST_SKIP() << r.err;
    throw;
  }
  ASSERT_EQ(job.ranks().size(), 2u);
  std::string cut = "nsenter --target " + slurp(job.dir().path("two.pid"));
  cut = cut.substr(0, cut.find('\n')) + " --net ip link set hlat0 down";
  ASSERT_EQ(std::system(cut.c_str()), 0);
  EXPECT_TRUE(within(60, [&] { return job.ranks().empty(); }));
  job.terminate();
  job.wait(60);
}

}  // namespace
}  // namespace hlat::test
