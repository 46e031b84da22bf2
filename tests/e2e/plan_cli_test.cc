// hlat plan on machine models, through the real binary: what is printed, what is written, and what wrong input is told.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/paths.h"
#include "support/run_binary.h"
#include "support/temp_dir.h"

namespace hlat::test {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

Words plan_7b(const Words& more) {
  Words words{"plan", "--config", source_path("configs/hlat-7b.yaml")};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

RunResult planned(const Words& more) { return run_binary(plan_7b(more)); }

TEST(PlanCli, AMachineAddsTimeAndCost) {
  const RunResult r = planned({"--machine", "trn1.32xlarge", "--ranks", "2048", "--tokens", "1.8T"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  for (const char* text : {"fits on trn1.32xlarge", "estimated step", "exposed tp", "$", "per 4M tokens", "estimated: "})
    EXPECT_NE(r.out.find(text), std::string::npos) << text << r.out;
  const json j = json::parse(planned({"--machine", "trn1.32xlarge", "--ranks", "2048", "--json"}).out);
  EXPECT_TRUE(j["time"]["estimated"]);
  EXPECT_GT(j["time"]["tokens_per_s"], 0);
  EXPECT_EQ(j["time"]["stages"].size(), 1u);
  EXPECT_FALSE(j["estimates"].empty());
}

// The plan of a GPU that is not here has its scratch; the card itself plans the same bytes (bench/results/planner-2026-11.md).
TEST(PlanCli, AGpuIsPlannedWithItsScratch) {
  const Words one{"parallel.tp=1", "parallel.dp=1", "train.global_batch=4", "train.precision=mixed", "train.recompute=none", "--json"};
  for (const Words& where : {Words{"--device", "h200"}, Words{"--machine", "p5en"}}) {
    Words words = one;
    words.insert(words.end(), where.begin(), where.end());
    const json j = json::parse(planned(words).out);
    EXPECT_EQ(j["bytes"]["total"], 138929696256) << where[1];
    EXPECT_EQ(j["bytes"]["temp"], 337641472) << where[1];
  }
}

TEST(PlanCli, Fp8IsPlannedWhereItIsEmulated) {
  const Words fp8{"--machine", "p4d", "train.precision=fp8", "parallel.tp=8", "parallel.dp=1", "train.global_batch=16"};
  const RunResult r = planned(fp8);
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_NE(r.out.find("products of FP8"), std::string::npos) << r.out;
  Words search = fp8;
  search[4] = "parallel.dp=auto";
  search.insert(search.end(), {"--search", "--ranks", "8"});
  const RunResult found = planned(search);
  EXPECT_EQ(found.exit_code, 0) << found.err;
}

TEST(PlanCli, TheWinnerOfASearchIsAConfig) {
  const TempDir dir;
  const RunResult r = planned({"--machine", "trn1.32xlarge", "--search", "--ranks", "16", "train.global_batch=16", "parallel.dp=auto",
                               "--out", dir.path("best.yaml")});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  for (const char* text : {"layouts of 16 ranks", "tokens/s", "given", "one choice changed", "more waiting for tp"})
    EXPECT_NE(r.out.find(text), std::string::npos) << text << r.out;
  const RunResult again = run_binary({"plan", "--config", dir.path("best.yaml"), "--machine", "trn1.32xlarge", "--ranks", "16", "--json"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  const json best = json::parse(
      planned({"--machine", "trn1.32xlarge", "--search", "--ranks", "16", "train.global_batch=16", "parallel.dp=auto", "--json"})
          .out)["best"][0];
  EXPECT_NEAR(json::parse(again.out)["time"]["step_s"], best["step_s"].get<double>(), 1e-9);
}

TEST(PlanCli, ScalingAndPricesAndTimelines) {
  const TempDir dir;
  const RunResult r = planned({"--machine", "trn1.32xlarge", "--nodes", "4,8,64", "--tokens", "1.8T", "--svg", dir.path("s.svg")});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  for (const char* text : {"efficiency", "100.0%", "dollars", "days"}) EXPECT_NE(r.out.find(text), std::string::npos) << text << r.out;
  EXPECT_NE(slurp(dir.path("s.svg")).find("</svg>"), std::string::npos);
  const RunResult prices = planned({"--prices", "p4d,trn1.32xlarge", "--nodes", "4", "train.global_batch=256", "parallel.dp=auto"});
  ASSERT_EQ(prices.exit_code, 0) << prices.err;
  EXPECT_LT(prices.out.find("trn1.32xlarge"), prices.out.find("p4d")) << "the cheapest is first\n" << prices.out;
  const RunResult timeline = planned({"--machine", "p5en", "--ranks", "16", "parallel.pp=2", "train.global_batch=16", "parallel.dp=auto",
                                      "--timeline", dir.path("t.json")});
  ASSERT_EQ(timeline.exit_code, 0) << timeline.err;
  const json trace = json::parse(slurp(dir.path("t.json")));
  EXPECT_GT(trace["traceEvents"].size(), 100u);
}

TEST(PlanCli, WrongInputIsToldWithWhatWouldBeRight) {
  struct Case {
    Words words;
    const char* told;
  };
  const TempDir dir;
  const std::string bad = dir.write("bad.yaml", "name: x\nranks_per_node: 8\nmemroy: 16 GB\n");
  for (const Case& c : {Case{{"--machine", "p5e"}, "p5en"}, Case{{"--machine", "trn1.32xlarge", "--eval"}, "--eval: has no effect"},
                        Case{{"--machine", "trn1.32xlarge", "--search", "--timeline", "t.json"}, "--timeline: has no effect"},
                        Case{{"--machine", bad}, "memroy"}, Case{{"--machine", "trn2", "--ranks", "16", "parallel.dp=auto"}, "is empty"},
                        Case{{"--search", "--ranks", "8"}, "has no effect with a plan without --machine"},
                        Case{{"--machine", "trn1.32xlarge", "--search", "--ranks", "7919"}, "ranks can"},
                        Case{{"--machine", "trn1.32xlarge", "--ranks", "2048", "--tokens", "many"}, "--tokens"},
                        Case{{"--machine", "trn1.32xlarge", "--ranks", "2048", "--price", "free"}, "on_demand"},
                        Case{{"--machine", "trn1.32xlarge", "--nodes", "0"}, "--nodes"},
                        Case{{"--machine", "trn1.32xlarge", "--ranks", "2048", "--timeline", dir.path("no/t.json")}, "--timeline"},
                        Case{{"--machine", "trn1.32xlarge", "--ranks", "2048", "--mtbf", "100"}, "--detection"}}) {
    const RunResult r = planned(c.words);
    EXPECT_EQ(r.exit_code, 2) << c.told << r.out << r.err;
    EXPECT_NE(r.err.find(c.told), std::string::npos) << c.told << '\n' << r.err;
  }
}

}  // namespace
}  // namespace hlat::test
