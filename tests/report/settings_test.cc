#include "report/settings.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace hlat {
namespace {

ReportRun run_with(const std::string& name, const std::optional<Config>& config) {
  ReportRun run;
  run.name = name, run.config = config;
  return run;
}

TEST(ReportSettings, AreThoseThatDifferAndDecideNumbersOrSpeed) {
  Config a, b, c;
  a.optim.lr = 1e-3, b.optim.lr = 1e-3, c.optim.lr = 2e-3;
  b.parallel.tp = 4;
  b.run.dir = "elsewhere", b.device.threads = 7, b.checkpoint.every = 3;
  c.checkpoint.init_from = "weights";
  const std::vector<ReportRun> runs = {run_with("unknown", {}), run_with("a", a), run_with("b", b), run_with("c", c)};
  const auto found = settings_json(runs);
  ASSERT_EQ(found.size(), 4u) << found;
  EXPECT_EQ(found[0]["key"], "parallel.tp");
  EXPECT_EQ(found[0]["values"], (std::vector<std::string>{"", "1", "4", "1"}));
  EXPECT_EQ(found[1]["key"], "device.threads");
  EXPECT_EQ(found[1]["values"][2], "7");
  EXPECT_EQ(found[2]["key"], "optim.lr");
  EXPECT_EQ(found[2]["values"][3], "0.002");
  EXPECT_EQ(found[3]["key"], "checkpoint.init_from");
  const std::string text = settings_text(runs);
  EXPECT_NE(text.find("run      parallel.tp  device.threads  optim.lr"), std::string::npos) << text;
  EXPECT_NE(text.find("b                  4               7     0.001"), std::string::npos) << text;
  EXPECT_TRUE(settings_text({runs[1], run_with("same", a)}).empty());
}

// What a comparison of speed is of.
TEST(ReportSettings, ThreadsBackendAndTransportAreShown) {
  Config a, b;
  b.device.threads = 3, b.device.backend = "cuda", b.parallel.comm = "staged";
  b.data.workers = a.data.workers + 1, b.checkpoint.keep = 9, b.run.lease_s = 7;
  std::vector<std::string> keys;
  for (const Setting& s : differing_settings({run_with("a", a), run_with("b", b)})) keys.push_back(s.key + "=" + s.values[1]);
  EXPECT_EQ(keys, (std::vector<std::string>{"parallel.comm=staged", "device.backend=cuda", "device.threads=3"}));
}

}  // namespace
}  // namespace hlat
