// Comparisons: pairs and standard errors, published means, failed tasks, and parts of tasks and groups.
#include "eval/compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "eval/published.h"
#include "eval/results_file.h"
#include "support/message_of.h"
#include "support/task_scores.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

using test::task_scores;
using test::TempDir;

const ComparedRow& row_of(const Comparison& c, const std::string& name, const std::string& key) {
  const auto found =
      std::find_if(c.rows.begin(), c.rows.end(), [&](const ComparedRow& r) { return r.name == name && r.metric.key == key; });
  if (found == c.rows.end()) throw std::out_of_range(name + " " + key);
  return *found;
}

TaskScores failed(const std::string& name, const std::string& group) {
  TaskScores t = task_scores(name, group, 0, 0);
  t.metrics.clear(), t.error = "bad data";
  return t;
}

// An evaluation of which examples are right, with samples.
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
  const auto n = static_cast<double>(right.size());
  TaskScores t = task_scores("pick", "CR", sum / n, 0.15);
  t.metrics.push_back({.key = "soft,none", .value = sum / 2 / n, .error = 0.1});
  t.examples = static_cast<int64_t>(right.size());
  r.tasks = {t, task_scores("other", "CR", name == "a" ? 0.5 : 0.6, 0.03),
             task_scores("crows", "truth and bias", name == "a" ? 0.5 : 0.7, 0.01, false)};
  save_results(r, folder + "/results.json");
}

TEST(Compare, PairsWhereThereAreSamplesElseStandardErrors) {
  const TempDir dir;
  write_run(dir, "a", {1, 1, 1, 1, 1, 1, 1, 1, 0, 0});
  write_run(dir, "b", {1, 1, 1, 0, 0, 0, 0, 0, 1, 0});
  const Comparison c = compare(std::vector<Results>{load_results(dir.path("a")), load_results(dir.path("b"))});
  const auto row = [&](const std::string& name, const std::string& key) -> const ComparedRow& { return row_of(c, name, key); };
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

TEST(Compare, DifferencesOfPairsAreOverThePairs) {
  const TempDir dir;
  write_run(dir, "a", {1, 1, 0, 0});
  write_run(dir, "b", {1, 0, 0, 0, 1, 1, 1, 1});
  const std::vector<Results> models = {load_results(dir.path("a")), load_results(dir.path("b"))};
  const Comparison c = compare(models);
  const ComparedRow& pick = row_of(c, "pick", "acc,none");
  EXPECT_EQ(pick.differences[0].pairs, 4);
  EXPECT_NEAR(pick.differences[0].value, 0.25, 1e-12) << "2 of 4 against 1 of 4; of all examples 2 of 4 against 5 of 8";
  EXPECT_EQ(pick.values[0].examples, 4);
  EXPECT_TRUE(pick.values[1].limited()) << "8 of 100";
  EXPECT_TRUE(std::isnan(row_of(c, "CR", "mean").differences[0].value)) << "means of other examples";
  EXPECT_EQ(c.wins[0].wins, 2) << "pick and crows";
}

TEST(Compare, PerplexitiesOfOtherExamplesHaveNoDifference) {
  const TempDir dir;
  write_run(dir, "a", {1, 1, 0, 0});
  write_run(dir, "b", {1, 0, 0, 0, 1, 1, 1, 1});
  std::vector<Results> models = {load_results(dir.path("a")), load_results(dir.path("b"))};
  for (Results& r : models) r.tasks[0].metrics[1].share = false;
  EXPECT_TRUE(std::isnan(row_of(compare(models), "pick", "soft,none").differences[0].value));
}

// A log keeps what an evaluation with a larger limit has answered.
TEST(Compare, SamplesThatDoNotCountAreNoPairs) {
  const TempDir dir;
  write_run(dir, "a", {1, 1, 0, 0, 0, 0});
  write_run(dir, "b", {1, 0, 0, 0, 1, 1});
  std::vector<Results> models = {load_results(dir.path("a")), load_results(dir.path("b"))};
  models[0].tasks[0].examples = 4;
  EXPECT_EQ(row_of(compare(models), "pick", "acc,none").differences[0].pairs, 4);
}

TEST(Compare, TasksInTwoGroupsAreShownOnce) {
  std::vector<Results> models(2);
  models[0].tasks = {task_scores("mine", "Law", 0.5, 0.01)};
  models[1].tasks = {task_scores("mine", "Medicine", 0.6, 0.01)};
  const Comparison c = compare(models);
  EXPECT_EQ(std::count_if(c.rows.begin(), c.rows.end(), [](auto& r) { return r.name == "mine"; }), 1);
  EXPECT_EQ(c.wins[0].all(), 1);
}

TEST(Compare, TheHeadlineIsTheFirstRowOfItsTask) {
  std::vector<Results> models(2);
  for (Results& r : models) {
    r.tasks = {task_scores("hellaswag", "CR", 0.5, 0.01)};
    r.tasks[0].metrics.push_back({.key = "acc_norm,none", .value = 0.6, .error = 0.01});
    r.tasks[0].headline = 1;
  }
  const Comparison c = compare(models);
  ASSERT_EQ(c.rows.size(), 3u);
  EXPECT_EQ(c.rows[1].metric.key, "acc_norm,none");
  EXPECT_TRUE(c.rows[1].headline);
  EXPECT_EQ(c.rows[2].metric.key, "acc,none");
  EXPECT_FALSE(c.rows[2].headline);
}

TEST(Compare, ATaskThatFailedInTheFirstModelStaysForTheOthers) {
  std::vector<Results> models(3);
  models[0].tasks = {failed("boolq", "RC"), failed("piqa", "CR")};
  models[1].tasks = {task_scores("boolq", "RC", 0.5, 0.01), failed("piqa", "CR")};
  models[2].tasks = {task_scores("boolq", "RC", 0.6, 0.01)};
  models[2].tasks[0].metrics.push_back({.key = "f1,none", .value = 0.2, .error = 0.01});
  const Comparison c = compare(models);
  const ComparedRow& boolq = row_of(c, "boolq", "acc,none");
  EXPECT_TRUE(boolq.values[0].failed);
  EXPECT_NEAR(boolq.values[1].metric->value, 0.5, 1e-12);
  EXPECT_NEAR(row_of(c, "boolq", "f1,none").values[2].metric->value, 0.2, 1e-12) << "a metric that only the last has";
  const ComparedRow& piqa = row_of(c, "piqa", "");
  EXPECT_TRUE(piqa.values[0].failed && piqa.values[1].failed) << "it failed everywhere";
  EXPECT_FALSE(piqa.values[2].failed) << "not tried";
  EXPECT_EQ(c.wins[0].all() + c.wins[1].all(), 0);
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
  for (const char* name : {"piqa", "hellaswag", "winogrande", "arc_easy", "arc_challenge", "openbookqa"})
    ours.tasks.push_back(task_scores(name, "CR", 0.7, 0.03));
  ours.tasks.push_back(task_scores("boolq", "RC", 0.7, 0.01));
  const Comparison mixed = compare(std::vector<Results>{ours, hlat});
  EXPECT_EQ(mixed.wins[0].all(), 2) << "CR and RC, of which only means are published";
  EXPECT_EQ(mixed.wins[0].wins, 1);
}

TEST(Compare, PartOfAGroupIsNotComparedWithThePublishedMeanOfTheWhole) {
  Results ours;
  ours.model = "ours";
  ours.tasks = {task_scores("piqa", "CR", 0.6, 0.01), task_scores("nq_open", "WK", 0.0, 0.01), task_scores("mmlu", "MMLU", 0.4, 0.01)};
  const Comparison c = compare(std::vector<Results>{ours, published_result("HLAT-7B")});
  EXPECT_TRUE(std::isnan(row_of(c, "CR", "acc,none").differences[0].value));
  EXPECT_TRUE(std::isnan(row_of(c, "WK", "acc,none").differences[0].value));
  EXPECT_EQ(row_of(c, "CR", "acc,none").values[0].examples, 1) << "of 6 tasks";
  EXPECT_EQ(row_of(c, "CR", "acc,none").values[0].available, 6);
  EXPECT_NEAR(row_of(c, "MMLU", "acc,none").differences[0].value, 0.4 - 0.413, 1e-12) << "its one task is all of it";
  EXPECT_EQ(c.wins[0].all(), 1);
  const Comparison turned = compare(std::vector<Results>{published_result("HLAT-7B"), ours});
  EXPECT_EQ(turned.wins[0].all(), 1);
}

TEST(Compare, PublishedNumbersHaveNoTest) {
  Results ours;
  ours.model = "ours";
  ours.tasks = {task_scores("mmlu", "MMLU", 0.9, 0.01), task_scores("boolq", "RC", 0.1, 0.01),
                task_scores("truthfulqa_mc1", "truth and bias", 0.1, 0.01)};
  for (const char* other : {"HLAT-7B", "HLAT-70B", "LLaMA-2 7B"}) {
    const Comparison c = compare(std::vector<Results>{ours, published_result(other)});
    EXPECT_EQ(c.wins[0].all(), 3);
    EXPECT_EQ(c.wins[0].tested, 0);
    for (const ComparedRow& row : c.rows) EXPECT_TRUE(std::isnan(row.differences[0].p)) << row.name;
  }
}

}  // namespace
}  // namespace hlat
