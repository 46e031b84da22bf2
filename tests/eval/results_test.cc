// Results: the harness's shape, groups as the paper has them, files that can be read again, and what is said of those that cannot.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "eval/results_file.h"
#include "support/message_of.h"
#include "support/small_tasks.h"
#include "support/task_scores.h"

namespace hlat {
namespace {

using test::SmallTasks;
using test::task_scores;
using test::TempDir;

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
}

TEST(Results, OfNoUseAreToldInWords) {
  const TempDir dir;
  const auto says = [&](const std::string& text, const std::string& words) {
    dir.write("bad.json", text);
    const std::string message = message_of([&] { load_results(dir.path("bad.json")); });
    EXPECT_EQ(message, dir.path("bad.json") + ": is not a file of results: " + words);
  };
  says("{\"results\": 3}", "it has no \"results\" by task");
  says("{\"models\": 3}", "it has no \"results\" by task");
  says("[1, 2]", "it has no \"results\" by task");
  says("{\"results\": ", "it is no JSON");
  says("{\"results\": {\"piqa\": 5}}", "\"results\" of piqa are not numbers by metric");
  says("{\"results\": {\"piqa\": {}}, \"n-samples\": {\"piqa\": {\"effective\": \"many\"}}}",
       "what it says of piqa is not as lm-evaluation-harness or hlat eval write it");
  EXPECT_NE(message_of([&] { load_results(dir.path("none.json")); }).find("none.json: cannot be read"), std::string::npos);
}

TEST(Results, OfARunFolderAreInItsEvaluations) {
  const TempDir dir;
  for (const char* step : {"step_2", "step_10"}) {
    std::filesystem::create_directories(dir.path("run/eval/" + std::string(step)));
    save_results(Results{.model = "m"}, dir.path("run/eval/" + std::string(step) + "/results.json"));
  }
  for (const char* given : {"run", "run/eval"})
    EXPECT_NE(message_of([&] {
                load_results(dir.path(given));
              }).find("; results are in " + dir.path("run/eval/step_10") + ", " + dir.path("run/eval/step_2")),
              std::string::npos)
        << message_of([&] { load_results(dir.path(given)); });
}

TEST(Results, GroupsHaveTheMeanOfTheirTasks) {
  Results r;
  r.tasks = {task_scores("piqa", "CR", 0.7, 0.03),
             task_scores("arc", "CR", 0.5, 0.04),
             task_scores("mc1", "truth and bias", 0.2, 0.01),
             task_scores("crows", "truth and bias", 0.6, 0.01, false),
             task_scores("mmlu", "MMLU", 0.4, 0.01),
             task_scores("mine", "Law", 0.1, 0.01)};
  TaskScores variant = task_scores("arc_25", "CR", 0.9, 0.01);
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
    TaskScores failed = task_scores("arc", "CR", 0, 0);
    failed.metrics.clear(), failed.error = "bad data";
    return failed;
  }());
  EXPECT_EQ(groups_of(r)[1].counted, 0u) << "a mean without one of its tasks is none";
}

}  // namespace
}  // namespace hlat
