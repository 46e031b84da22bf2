// The plan as people and machines read it: its numbers are those of the dry run, stage by stage, and they add up.
#include "plan/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/format.h"
#include "support/layout_run.h"

namespace hlat {
namespace {

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// The words of the first line that begins with these.
std::vector<std::string> line_with(const std::string& text, const std::vector<std::string>& first) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> words = words_of(line);
    if (words.size() >= first.size() && std::equal(first.begin(), first.end(), words.begin())) return words;
  }
  ADD_FAILURE() << fmt::format("no line with {}", fmt::join(first, " ")) << "\n" << text;
  return std::vector<std::string>(8);
}

struct Planned {
  explicit Planned(const Layout& layout) : config(layout.config()), stages(plan_stages(config, {})), table(plan_table(config, stages)) {}
  Config config;
  std::vector<RankPlan> stages;
  std::string table;
};

TEST(PlanTable, RegionsAreThoseOfTheFullestStageAndAddUp) {
  const Planned p({.tp = 2, .pp = 2, .dp = 2, .sp = true, .zero1 = true, .cuts = {1}});
  const MemoryPlan& memory = fullest(p.stages).memory;
  size_t sum = 0;
  for (int i = 0; i < kPurposes; ++i) {
    const size_t bytes = std::stoull(
        line_with(p.table, {std::string(name_of(static_cast<Purpose>(i))), std::to_string(memory.bytes[static_cast<size_t>(i)])})[1]);
    sum += bytes;
  }
  EXPECT_EQ(std::stoull(line_with(p.table, {"total"})[1]), sum);
  EXPECT_EQ(sum, memory.total());
  EXPECT_NE(p.table.find("8 ranks: tp 2 x pp 2 x dp 2, sequence parallel, ZeRO-1\n"), std::string::npos) << p.table;
}

TEST(PlanTable, HasALineForEachStage) {
  const Planned p({.pp = 3, .cuts = {1, 2}});
  ASSERT_EQ(p.stages.size(), 3u);
  for (const RankPlan& stage : p.stages) {
    std::vector<std::string> expected = {std::to_string(stage.coord.pp)};
    for (const size_t bytes : stage.memory.bytes)
      for (const std::string& word : words_of(format_bytes(bytes))) expected.push_back(word);
    line_with(p.table, expected);
  }
  EXPECT_EQ(Planned({}).table.find("\nstage"), std::string::npos);  // one stage needs no table of them
}

TEST(PlanTable, TrafficIsThatOfTheDryRun) {
  const Planned p({.tp = 2, .dp = 4, .zero1 = true});
  for (const AxisTraffic& a : p.stages[0].traffic)
    for (int k = 0; k < kCommKinds; ++k) {
      const auto kind = static_cast<CommKind>(k);
      const CommCost& cost = a.traffic[kind];
      if (a.size == 1 || cost.calls == 0 || kind == CommKind::recv) continue;
      const auto words = line_with(p.table, {a.axis, std::to_string(a.size), std::string(name_of(kind)), std::to_string(cost.calls)});
      EXPECT_EQ(fmt::format("{}", fmt::join(words.begin() + 4, words.end(), " ")), format_bytes(static_cast<uint64_t>(cost.bytes)));
    }
  EXPECT_EQ(Planned({}).table.find("traffic"), std::string::npos);
}

TEST(PlanTable, SaysTheSameAsItsJson) {
  const Planned p({.tp = 2, .pp = 2});
  const Fit fit{.device = "a device", .available = 1e9};
  const nlohmann::ordered_json j = plan_json(p.config, p.stages, fit, PlanTarget{});
  const RankPlan& most = fullest(p.stages);
  EXPECT_EQ(j["bytes"]["total"], most.memory.total());
  EXPECT_EQ(j["ranks"], 4);
  ASSERT_EQ(j["stages"].size(), 2u);
  double executed = 0;
  for (size_t s = 0; s < 2; ++s) {
    EXPECT_EQ(j["stages"][s]["bytes"]["total"], p.stages[s].memory.total());
    executed += 2 * p.stages[s].executed_flops();
  }
  EXPECT_EQ(j["executed_flops_per_step"], executed);
  for (const auto& entry : j["largest"]) {
    const std::string label = entry["label"];
    EXPECT_NE(p.table.find("  " + label), std::string::npos) << label;
  }
  EXPECT_TRUE(j["fits"]);
  EXPECT_TRUE(fit.fits(p.config, most));
  EXPECT_FALSE((Fit{.device = "a device", .available = static_cast<double>(most.memory.total()) - 1}.fits(p.config, most)));
}

}  // namespace
}  // namespace hlat
