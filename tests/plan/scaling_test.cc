// Rows of scaling: efficiency and dollars from what was simulated, and words where something does not fit or is not known.
#include "plan/scaling.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"

namespace hlat::test {
namespace {

constexpr double kGibibyte = 1073741824.0;

ScalingPoint point(int64_t nodes, double tokens_per_s, double needed_gib = 12) {
  return {.nodes = nodes,
          .ranks = 32 * nodes,
          .layout = "tp 8 x dp " + std::to_string(4 * nodes),
          .step_s = 4194304 / tokens_per_s,
          .tokens_per_s = tokens_per_s,
          .mfu = 0.3,
          .needed_bytes = needed_gib * kGibibyte,
          .available_bytes = 14.5 * kGibibyte};
}

// 2 nodes do not fit; no layout exists for 3.
Scaling some_scaling(const NodePrice& price = {.model = "on demand", .dollars_per_hour = 21.5, .date = "2026-11"}) {
  ScalingPoint none = point(3, 1);
  none.problem = "1024 sequences are not shared by 12 replicas";
  return scaling_of("trn1, hlat-7b", {point(2, 50e3, 20), none, point(4, 100e3), point(8, 196e3), point(64, 1.16e6)},
                    {.tokens = 1.8e12, .price = price});
}

TEST(Scaling, IsMeasuredAgainstTheFirstRowThatFits) {
  const Scaling s = some_scaling();
  ASSERT_EQ(s.rows.size(), 5u);
  EXPECT_FALSE(s.rows[0].cost);
  EXPECT_FALSE(s.rows[1].cost);
  EXPECT_DOUBLE_EQ(s.rows[2].efficiency, 1);
  EXPECT_DOUBLE_EQ(s.rows[3].efficiency, 0.98);
  EXPECT_DOUBLE_EQ(s.rows[4].efficiency, 1.16e6 / 1.6e6);
  EXPECT_DOUBLE_EQ(s.rows[4].tokens_per_rank_s, 1.16e6 / 2048);
  // Dollars per token and efficiency are two words for one thing on one machine.
  EXPECT_DOUBLE_EQ(s.rows[2].cost->cpt.value() / s.rows[4].cost->cpt.value(), s.rows[4].efficiency);
}

TEST(Scaling, TableSaysWhatDoesNotFitAndByHowMuch) {
  const std::string text = scaling_text(some_scaling());
  EXPECT_NE(text.find("does not fit: 5.5 GiB short"), std::string::npos) << text;
  EXPECT_NE(text.find("1024 sequences are not shared by 12 replicas"), std::string::npos) << text;
  EXPECT_NE(text.find("72.5%"), std::string::npos) << text;
  EXPECT_NE(text.find("$593,103"), std::string::npos) << text;  // 17.96 days of 64 nodes
  EXPECT_NE(text.find("$21.50 an hour for a node, on demand, 2026-11"), std::string::npos) << text;
  EXPECT_NE(text.find("energy unknown: give watts"), std::string::npos) << text;
}

TEST(Scaling, AnUnknownPriceLeavesDaysAndNamesTheKey) {
  const Scaling s = some_scaling({.key = "prices.on_demand"});
  const std::string text = scaling_text(s);
  EXPECT_NE(text.find("dollars unknown: give prices.on_demand"), std::string::npos) << text;
  EXPECT_EQ(text.find('$'), text.find("$/4M tokens")) << text;
  EXPECT_EQ(text.rfind('$'), text.find("$/4M tokens")) << text;
  const nlohmann::ordered_json j = scaling_json(s);
  EXPECT_EQ(j["rows"][4]["dollars"], "unknown: give prices.on_demand");
  EXPECT_NEAR(j["rows"][4]["days"].get<double>(), 17.96, 0.01);
}

TEST(Scaling, JsonHasTheSameNumbersInTheSameOrder) {
  const Scaling s = some_scaling();
  const nlohmann::ordered_json j = scaling_json(s);
  EXPECT_EQ(j.begin().key(), "name");
  ASSERT_EQ(j["rows"].size(), 5u);
  EXPECT_EQ(j["rows"][0]["fits"], false);
  EXPECT_EQ(j["rows"][0]["missing_bytes"], 5.5 * kGibibyte);
  EXPECT_FALSE(j["rows"][0].contains("tokens_per_s"));
  EXPECT_EQ(j["rows"][1]["problem"], "1024 sequences are not shared by 12 replicas");
  EXPECT_EQ(j["rows"][4]["dollars"], s.rows[4].cost->dollars.value());
  EXPECT_EQ(j["rows"][4]["efficiency"], s.rows[4].efficiency);
}

TEST(Scaling, NothingFits) {
  const Scaling s = scaling_of("small", {point(2, 1, 20), point(4, 1, 30)}, {.tokens = 1e9});
  EXPECT_NE(scaling_text(s).find("15.5 GiB short"), std::string::npos);
  EXPECT_NE(scaling_svg({s}, ScalingAxis::tokens_per_s, "nothing").find("</svg>"), std::string::npos);
}

TEST(Scaling, PlotsHaveALineForEachMachineThatHasTheNumber) {
  const std::vector<Scaling> both{some_scaling(), some_scaling({.key = "prices.on_demand"})};
  const auto lines = [&](ScalingAxis axis) {
    const std::string svg = scaling_svg(both, axis, "hlat-7b");
    size_t n = 0;
    for (size_t at = svg.find("<polyline"); at != std::string::npos; at = svg.find("<polyline", at + 1)) ++n;
    return n;
  };
  EXPECT_EQ(lines(ScalingAxis::tokens_per_s), 4u);  // each with its linear one
  EXPECT_EQ(lines(ScalingAxis::efficiency), 2u);
  EXPECT_EQ(lines(ScalingAxis::cpt), 1u);
}

}  // namespace
}  // namespace hlat::test
