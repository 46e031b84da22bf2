// hlat check --model as a user starts it, on four ranks; the gate of hlat launch; and that the loss of a run does not show the bugs that it
// finds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "dist/job.h"

namespace hlat::test {
namespace {

struct ModelChecked {
  int exit_code = 0;
  nlohmann::json report;
  std::string err;
  std::vector<std::string> failed() const {
    std::vector<std::string> names;
    for (const auto& c : report["checks"])
      if (c["state"] == "failed") names.push_back(c["name"]);
    return names;
  }
  std::string words(const std::string& name) const {
    for (const auto& c : report["checks"])
      if (c["name"] == name) return c["words"];
    return {};
  }
};

ModelChecked check_model(const Job::Words& more) {
  Job::Words words = {"check", "--model", "--config", "tiny.yaml", "--json", "run.dir=run"};
  words.insert(words.end(), more.begin(), more.end());
  Job job(4, words, {"--bind-to", "none"});
  const RunResult r = job.wait(240);
  EXPECT_FALSE(std::filesystem::exists(job.dir().path("run")));
  for (const auto& entry : std::filesystem::directory_iterator(job.dir().path()))
    EXPECT_NE(entry.path().filename().string().find(".hlat_check"), 0u) << "nothing is left behind";
  return {.exit_code = r.exit_code, .report = nlohmann::json::parse(r.out, nullptr, false), .err = r.err};
}

TEST(SelfCheckDist, AHealthyModelIsWell) {
  const ModelChecked c = check_model({"parallel.tp=2", "train.precision=mixed"});
  EXPECT_EQ(c.exit_code, 0) << c.err << c.report.dump(1);
  EXPECT_EQ(c.report["well"], true);
  EXPECT_EQ(c.report["checks"].size(), 11u);
}

TEST(SelfCheckDist, ADroppedShareIsNamed) {
  const ModelChecked c = check_model({"parallel.tp=2", "fault.inject=drop_share rank=3"});
  EXPECT_EQ(c.exit_code, 5) << c.err;
  ASSERT_FALSE(c.failed().empty());
  EXPECT_EQ(c.failed().front(), "gradients") << c.report.dump(1);
  EXPECT_NE(c.words("gradients").find("the share of rank 3 (tp 1, pp 0, dp 1) counts"), std::string::npos) << c.words("gradients");
}

TEST(SelfCheckDist, BadInputIsToldBeforeAnyRankComputes) {
  const ModelChecked c = check_model({"--only", "gradient"});
  EXPECT_EQ(c.exit_code, 2) << c.err;
  EXPECT_NE(c.err.find("'gradient' is no check of the model"), std::string::npos) << c.err;
}

TEST(SelfCheckDist, AWrongModelIsNotLaunched) {
  Job job(0, {"launch", "--config", "tiny.yaml", "run.dir=run", "launch.ranks=2", "launch.check=start", "launch.mpirun=--bind-to none",
              "fault.inject=bias_correction"});
  const RunResult r = job.wait(240);
  EXPECT_EQ(r.exit_code, 5) << r.err;
  EXPECT_NE(r.err.find("hlat check --model: updates: the first update is 0.447 times"), std::string::npos) << r.err;
  EXPECT_TRUE(job.metrics().empty()) << "a rank has trained";
}

TEST(SelfCheckDist, AHealthyModelIsLaunched) {
  Job job(0, {"launch", "--config", "tiny.yaml", "run.dir=run", "launch.ranks=2", "launch.check=start", "launch.mpirun=--bind-to none",
              "checkpoint.every=0", "checkpoint.at_end=false"});
  const RunResult r = job.wait(240);
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(job.metrics().size(), 5u);
}

// Mean loss of the last steps of a run of 60.
double end_loss(int ranks, const Job::Words& more) {
  Job::Words words = {"train.steps=60", "checkpoint.every=0", "checkpoint.at_end=false", "optim.warmup=10", "parallel.health_every=0"};
  words.insert(words.end(), more.begin(), more.end());
  Job job(ranks, tiny_run(words), {"--bind-to", "none"});
  const RunResult r = job.wait(240);
  EXPECT_EQ(r.exit_code, 0) << r.err;
  const auto lines = job.metrics();
  double sum = 0;
  for (size_t i = lines.size() - 20; i < lines.size(); ++i) sum += lines[i]["loss"].get<double>() / 20;
  return sum;
}

// The spread of healthy runs with other seeds is the noise; a bug within twice of it is not seen in the curve. A share that is dropped and
// rows that come twice halve the batch, and look like a run with a smaller one: slower, and nothing like a fault.
TEST(SelfCheckDist, TheLossCurveAloneDoesNotShowTheBugs) {
  const double healthy = end_loss(2, {});
  double spread = 0;
  for (const char* seed : {"1", "2", "3"})
    spread = std::max(spread, std::abs(end_loss(2, {std::string("run.seed=") + seed, std::string("data.seed=") + seed}) - healthy));
  const std::vector<std::pair<const char*, const char*>> bugs = {
      {"scale_grad rank=1", "parallel.tp=2"},
      {"rope rank=1", "parallel.pp=2"},
      {"bias_correction", "parallel.dp=2"},
      {"leak", "parallel.dp=2"}};  // which shows when attention has learned to look ahead
  for (const auto& [bug, layout] : bugs) {
    const double loss = end_loss(2, {std::string("fault.inject=") + bug, layout});
    EXPECT_LT(std::abs(loss - healthy), 2 * spread) << bug << ": " << loss << ", healthy " << healthy << ", spread " << spread;
  }
  for (const char* bug : {"drop_share rank=1", "repeat"}) {
    const double loss = end_loss(2, {std::string("fault.inject=") + bug});
    EXPECT_LT(loss, 5.2) << bug << ": it falls, from 6.2";
    EXPECT_GT(loss, healthy - 2 * spread) << bug;
  }
}

}  // namespace
}  // namespace hlat::test
