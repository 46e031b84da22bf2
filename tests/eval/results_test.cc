// Results: the harness's shape, groups as the paper has them, files that can be read again, and comparisons of two models.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "eval/compare.h"
#include "eval/published.h"
#include "eval/results_file.h"
#include "support/message_of.h"
#include "support/small_tasks.h"

namespace hlat {
namespace {

using test::SmallTasks;
using test::TempDir;

TaskScores task(const std::string& name, const std::string& group, double value, double error, bool higher = true) {
  TaskScores t;
  t.name = name, t.title = name, t.group = group;
  t.metrics = {{.key = "acc,none", .value = value, .error = error, .higher_is_better = higher}};
  t.examples = t.available = 100;
  return t;
}

Results results_of_small_tasks(SmallTasks& small, const std::string& samples) {
  auto model = small.model();
  Results results;
  results.model = "fake step_10";
  results.header = {{"config", {{"model", "hlat"}, {"step", 10}}}, {"date", 5}};
  for (const TaskResult& r : small.run(model, {"pick", "parts", "read"}, small.options(samples)).tasks) results.put(scores_of(r));
  return results;
}

TEST(Results, HaveTheHarnesssShape) {
  SmallTasks small;
  const auto j = to_json(results_of_small_tasks(small, ""));
  EXPECT_TRUE(j["results"]["pick"]["acc,none"].is_number());
  EXPECT_TRUE(j["results"]["pick"]["acc_stderr,none"].is_number());
  EXPECT_TRUE(j["results"]["parts_one"]["acc,none"].is_number());
  EXPECT_EQ(j["groups"]["parts"], j["results"]["parts"]);
  EXPECT_EQ(j["group_subtasks"]["parts"], (nlohmann::ordered_json{"parts_one", "parts_two"}));
  EXPECT_EQ(j["versions"]["pick"], 3);
  EXPECT_EQ(j["n-shot"]["pick"], 0);
  EXPECT_EQ(j["higher_is_better"]["pick"]["acc"], true);
  EXPECT_EQ(j["higher_is_better"]["read"]["word_perplexity"], false);
  EXPECT_EQ(j["n-samples"]["parts"], (nlohmann::ordered_json{{"original", 8}, {"effective", 8}}));
  EXPECT_EQ(j["config"]["step"], 10);
  EXPECT_EQ(j["date"], 5);
  EXPECT_EQ(j["table"][0]["group"], "MMLU");
}

TEST(Results, AreTheSameWhenReadAgain) {
  SmallTasks small;
  const Results results = results_of_small_tasks(small, "");
  const std::string file = small.dir().path("results.json");
  save_results(results, file);
  EXPECT_EQ(to_json(load_results(file)), to_json(results));
  EXPECT_EQ(load_results(small.dir().path()).model, "fake step_10") << "a folder stands for its file";
  small.dir().write("bad.json", "{\"results\": 3}");
  EXPECT_NE(message_of([&] { load_results(small.dir().path("bad.json")); }).find("is not a file of results"), std::string::npos);
  EXPECT_NE(message_of([&] { load_results(small.dir().path("none.json")); }).find("cannot be read"), std::string::npos);
}

TEST(Results, GroupsHaveTheMeanOfTheirTasks) {
  Results r;
  r.tasks = {task("piqa", "CR", 0.7, 0.03),
             task("arc", "CR", 0.5, 0.04),
             task("mc1", "truth and bias", 0.2, 0.01),
             task("crows", "truth and bias", 0.6, 0.01, false),
             task("mmlu", "MMLU", 0.4, 0.01),
             task("mine", "Law", 0.1, 0.01)};
  TaskScores variant = task("arc_25", "CR", 0.9, 0.01);
  variant.in_group_mean = false;
  r.tasks.insert(r.tasks.begin(), variant);
  const std::vector<GroupScore> groups = groups_of(r);
  ASSERT_EQ(groups.size(), 4u);
  EXPECT_EQ(groups[0].name, "MMLU");
  EXPECT_EQ(groups[1].name, "CR");
  EXPECT_EQ(groups[1].counted, 2u);
  EXPECT_DOUBLE_EQ(groups[1].mean.value, 0.6);
  EXPECT_DOUBLE_EQ(groups[1].mean.error, 0.025);
  EXPECT_EQ(groups[1].tasks.back()->name, "arc_25") << "shown, not counted";
  EXPECT_EQ(groups[2].counted, 0u) << "of numbers that are better in two directions there is no mean";
  EXPECT_EQ(groups[3].name, "Law");
  r.put([] {
    TaskScores failed = task("arc", "CR", 0, 0);
    failed.metrics.clear(), failed.error = "bad data";
    return failed;
  }());
  EXPECT_EQ(groups_of(r)[1].counted, 0u) << "a mean without one of its tasks is none";
}

// Two runs of ten examples: 3 right in both, 5 only in the first, 1 only in the second.
void write_run(const TempDir& dir, const std::string& name, const std::vector<int>& right, const std::string& target = "t") {
  const std::string folder = dir.path(name);
  std::filesystem::create_directories(folder + "/samples");
  Results r;
  r.model = name;
  double sum = 0;
  std::ofstream samples(folder + "/samples/pick.jsonl");
  for (size_t i = 0; i < right.size(); ++i) {
    sum += right[i];
    samples << nlohmann::json{{"subtask", "pick"},
                              {"doc_id", i},
                              {"target", target + std::to_string(i)},
                              {"metrics", {{"acc,none", right[i]}, {"soft,none", right[i] * 0.5 + 0.01 * static_cast<double>(i % 3)}}}}
            << "\n";
  }
  TaskScores t = task("pick", "CR", sum / 10, 0.15);
  t.metrics.push_back({.key = "soft,none", .value = sum / 20, .error = 0.1});
  r.tasks = {t, task("other", "CR", name == "a" ? 0.5 : 0.6, 0.03), task("crows", "truth and bias", name == "a" ? 0.5 : 0.7, 0.01, false)};
  save_results(r, folder + "/results.json");
}

TEST(Compare, PairsWhereThereAreSamplesElseStandardErrors) {
  const TempDir dir;
  write_run(dir, "a", {1, 1, 1, 1, 1, 1, 1, 1, 0, 0});
  write_run(dir, "b", {1, 1, 1, 0, 0, 0, 0, 0, 1, 0});
  const Comparison c = compare(std::vector<Results>{load_results(dir.path("a")), load_results(dir.path("b"))});
  const auto row = [&](const std::string& name, const std::string& key) -> const ComparedRow& {
    return *std::find_if(c.rows.begin(), c.rows.end(), [&](const ComparedRow& r) { return r.name == name && r.metric.key == key; });
  };
  const Difference& pick = row("pick", "acc,none").differences[0];
  EXPECT_EQ(pick.test, TestKind::mcnemar);
  EXPECT_EQ(pick.pairs, 10);
  EXPECT_NEAR(pick.value, 0.4, 1e-12);
  EXPECT_NEAR(pick.p, 2.0 * (1 + 6) / 64, 1e-12) << "1 against 5 of 6 pairs that differ";
  EXPECT_EQ(row("pick", "soft,none").differences[0].test, TestKind::paired);
  const Difference& other = row("other", "acc,none").differences[0];
  EXPECT_EQ(other.test, TestKind::unpaired);
  EXPECT_NEAR(other.p, std::erfc(0.1 / std::hypot(0.03, 0.03) / std::sqrt(2)), 1e-9);
  EXPECT_EQ(row("CR", "mean").group, true);
  EXPECT_EQ(c.wins[0].wins, 2) << "pick, and crows where less is better";
  EXPECT_EQ(c.wins[0].losses, 1);
  EXPECT_EQ(c.wins[0].all(), 3) << "single tasks, not groups";
  EXPECT_EQ(c.wins[0].clear_wins, 1);
  EXPECT_EQ(c.wins[0].clear_losses, 1);
}

TEST(Compare, ExamplesOfAnotherSetAreNoPairs) {
  const TempDir dir;
  write_run(dir, "a", {1, 1, 1, 1, 1, 1, 1, 1, 0, 0});
  write_run(dir, "b", {1, 1, 1, 0, 0, 0, 0, 0, 1, 0}, "another ");
  const Comparison c = compare(std::vector<Results>{load_results(dir.path("a")), load_results(dir.path("b"))});
  for (const ComparedRow& row : c.rows) EXPECT_EQ(row.differences[0].pairs, 0) << row.name;
}

TEST(Compare, PublishedRowsOfTheTables) {
  const std::vector<Results> all = published_results();
  ASSERT_EQ(all.size(), 12u);
  const Results hlat = published_result("hlat-7b");
  EXPECT_NEAR(hlat.find("MMLU")->metrics[0].value, 0.413, 1e-12);
  EXPECT_NEAR(hlat.find("MMLU")->metrics[0].error, 0.036, 1e-12);
  EXPECT_NEAR(hlat.find("truthfulqa_mc2")->metrics[0].value, 0.372, 1e-12);
  EXPECT_NE(message_of([] { published_result("HLAT 7B"); }).find("did you mean HLAT-7B?"), std::string::npos);
  const Comparison c = compare(std::vector<Results>{hlat, published_result("OpenLLaMA-1 7B")});
  // Against table II: MMLU, CR, RC, Math, pass@1 and pass@10 are higher, WK is lower; against table V: mc1 and mc2 are higher, both
  // shares of stereotypes too, which is worse.
  EXPECT_EQ(c.wins[0].wins, 8);
  EXPECT_EQ(c.wins[0].losses, 3);
  Results ours;
  ours.model = "ours";
  ours.tasks = {task("piqa", "CR", 0.7, 0.03), task("arc_easy", "CR", 0.5, 0.04), task("boolq", "RC", 0.7, 0.01)};
  const Comparison mixed = compare(std::vector<Results>{ours, hlat});
  EXPECT_EQ(mixed.wins[0].all(), 2) << "CR and RC, of which only means are published";
  EXPECT_EQ(mixed.wins[0].wins, 1);
}

}  // namespace
}  // namespace hlat
