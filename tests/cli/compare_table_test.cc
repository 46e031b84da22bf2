// The table of compared models: headlines first, numbers of examples, failed tasks, and the lines below it.
#include "cli/compare_table.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "eval/published.h"

namespace hlat {
namespace {

Results model(const std::string& name, double value, int64_t examples) {
  TaskScores t;
  t.name = "hellaswag", t.title = "HellaSwag", t.group = "CR";
  t.metrics = {{.key = "acc,none", .value = value, .error = 0.01}, {.key = "acc_norm,none", .value = value + 0.1, .error = 0.01}};
  t.headline = 1, t.examples = examples, t.available = 2500;
  Results r;
  r.model = name, r.tasks = {t};
  return r;
}

void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nwithout: " << part;
}

TEST(CompareTable, ShowsHeadlinesFirstAndNumbersOfExamples) {
  const Comparison c = compare(std::vector<Results>{model("a", 0.5, 2500), model("b", 0.4, 40)});
  const std::string text = comparison_text(c);
  expect_has(text, "metric       a             n     b             n  difference            test\n");
  expect_has(text, "  HellaSwag  acc_norm  60.0          2500  50.0    40 of 2500       +10.0  p<0.0001  z\n");
  EXPECT_LT(text.find("  HellaSwag"), text.find("acc  ")) << text;
  expect_has(text, "b is limited to part of the examples: hellaswag 40 of 2500\n");
  EXPECT_EQ(text.find("a is limited"), std::string::npos);
  expect_has(text, "a has part of these groups: CR 1 of 6 tasks\n");
  expect_has(text, "a wins 1 of 1 against b; clearly (p < 0.05): 1, and loses 0\n");
  expect_has(summary_text(c), "b is limited");
  EXPECT_EQ(comparison_json(c)["rows"][1]["values"][1]["n"], 40);
}

TEST(CompareTable, ShowsWhatFailed) {
  Results bad = model("a", 0, 0);
  bad.tasks[0].metrics.clear();
  const Comparison c = compare(std::vector<Results>{bad, model("b", 0.4, 2500)});
  expect_has(comparison_text(c), "  HellaSwag  acc_norm  failed     50.0          2500\n");
  expect_has(comparison_text(c), "a and b have no task or whole group in common\n");
  EXPECT_EQ(comparison_json(c)["rows"][1]["values"][0]["failed"], true);
}

TEST(CompareTable, SaysWhereThereIsNoTest) {
  Results ours = model("a", 0.5, 100);
  ours.tasks[0].name = "mmlu", ours.tasks[0].group = "MMLU", ours.tasks[0].headline = 0;
  const std::string text = comparison_text(compare(std::vector<Results>{ours, published_result("HLAT-7B")}));
  expect_has(text, "a wins 1 of 1 against HLAT-7B (published); no test can be made\n");
}

}  // namespace
}  // namespace hlat
