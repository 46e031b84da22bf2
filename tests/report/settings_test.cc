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

TEST(ReportSettings, AreThoseThatDifferAndDecideSomething) {
  Config a, b, c;
  a.optim.lr = 1e-3, b.optim.lr = 1e-3, c.optim.lr = 2e-3;
  b.parallel.tp = 4;
  b.run.dir = "elsewhere", b.device.threads = 7, b.checkpoint.every = 3;
  c.checkpoint.init_from = "weights";
  const std::vector<ReportRun> runs = {run_with("unknown", {}), run_with("a", a), run_with("b", b), run_with("c", c)};
  const auto found = settings_json(runs);
  ASSERT_EQ(found.size(), 3u) << found;
  EXPECT_EQ(found[0]["key"], "parallel.tp");
  EXPECT_EQ(found[0]["values"], (std::vector<std::string>{"", "1", "4", "1"}));
  EXPECT_EQ(found[1]["key"], "optim.lr");
  EXPECT_EQ(found[1]["values"][3], "0.002");
  EXPECT_EQ(found[2]["key"], "checkpoint.init_from");
  const std::string text = settings_text(runs);
  EXPECT_NE(text.find("run      parallel.tp  optim.lr"), std::string::npos) << text;
  EXPECT_NE(text.find("b                  4     0.001"), std::string::npos) << text;
  EXPECT_TRUE(settings_text({runs[1], run_with("same", a)}).empty());
}

}  // namespace
}  // namespace hlat
