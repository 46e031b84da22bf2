// What faults cost, as people and machines read it.
#include "plan/fault_report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/error.h"

namespace hlat::test {
namespace {

FaultReport some_report() {
  return {.ask = {.nodes = 64, .node_mtbf_h = 1337, .detection_s = 300, .restart_s = 600, .save_stall_s = 5, .commit_s = 60, .step_s = 3.6},
          .every = 1000,
          .useful_days = 18,
          .price = {.dollars_per_hour = 21.5}};
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(FaultReport, DollarsAreThoseOfTheSharesAndAddUp) {
  const FaultReport r = some_report();
  const FaultShares s = fault_shares_of(r, r.every);
  const FaultDollars day = fault_dollars(r.ask, s, r.price, 1);
  EXPECT_NEAR(day.total().value(), 64 * 21.5 * 24 * (1 - s.useful), 1e-6);
  EXPECT_DOUBLE_EQ(day.restart.value(), 64 * 21.5 * 24 * s.restart);
  const nlohmann::ordered_json j = fault_json(r);
  EXPECT_DOUBLE_EQ(j["given"]["days"].get<double>(), 18 / s.useful);
  // The run's dollars are those of its useful days and of what was lost.
  EXPECT_NEAR(j["given"]["dollars_lost"]["total"].get<double>(), 64 * 21.5 * 24 * (18 / s.useful - 18), 1e-6);
}

TEST(FaultReport, BestIsNotWorseThanGiven) {
  const nlohmann::ordered_json j = fault_json(some_report());
  EXPECT_EQ(j["given"]["steps"], 1000);
  EXPECT_LT(j["best"]["steps"], 1000);
  EXPECT_GT(j["best"]["goodput"], j["given"]["goodput"]);
  const std::string text = fault_text(some_report());
  EXPECT_TRUE(has(text, "the job fails every 20h 53m")) << text;
  EXPECT_TRUE(has(text, "1000 steps, 1h 00m")) << text;
  EXPECT_TRUE(has(text, "best")) << text;
}

TEST(FaultReport, SaysWhenNothingIsLeft) {
  FaultReport r = some_report();
  r.ask.node_mtbf_h = 1;
  EXPECT_TRUE(has(fault_text(r), "goodput is near 0: the job fails every 56s and takes 15m 00s to work again")) << fault_text(r);
  EXPECT_TRUE(has(fault_text(r), "never ends"));
  EXPECT_FALSE(fault_json(r)["best"].contains("days"));
  r.ask.node_mtbf_h = 12;
  EXPECT_TRUE(has(fault_text(r), "most of the time is lost to recovery")) << fault_text(r);
}

TEST(FaultReport, SaysWhenNothingFails) {
  FaultReport r = some_report();
  r.ask.node_mtbf_h = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(has(fault_text(r), "nothing fails: no saves are needed")) << fault_text(r);
  EXPECT_TRUE(fault_json(r)["best"]["steps"].is_null());
  EXPECT_EQ(fault_json(r)["best"]["goodput"], 1);
}

TEST(FaultReport, WithoutSavesTheWholeRunIsOneInterval) {
  FaultReport r = some_report();
  r.every = std::nullopt;
  r.useful_days = 1;
  const double rate = r.ask.failures_per_s() * 86400;
  EXPECT_NEAR(fault_shares_of(r, r.every).useful / fault_shares_of(r, r.every).up(), rate / std::expm1(rate), 1e-12);
  EXPECT_TRUE(has(fault_text(r), "no saves")) << fault_text(r);
}

TEST(FaultReport, UnknownPriceIsNoNumber) {
  FaultReport r = some_report();
  r.price = {.key = "prices.on_demand"};
  EXPECT_TRUE(has(fault_text(r), "unknown: give prices.on_demand"));
  EXPECT_FALSE(has(fault_text(r), "$"));
  EXPECT_EQ(fault_json(r)["given"]["dollars_lost_per_day"]["total"], "unknown: give prices.on_demand");
}

TEST(FaultReport, RefusesAnIntervalShorterThanASave) {
  FaultReport r = some_report();
  r.every = 10;
  try {
    fault_text(r);
    ADD_FAILURE();
  } catch (const UsageError& e) {
    EXPECT_TRUE(has(e.what(), "checkpoint.every = 10")) << e.what();
    EXPECT_TRUE(has(e.what(), "at least 17")) << e.what();
  }
  r.every = 17;
  EXPECT_NO_THROW(fault_text(r));
}

}  // namespace
}  // namespace hlat::test
