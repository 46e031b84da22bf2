// Files of lm-evaluation-harness: names of models, and tasks that are ours by name.
#include "eval/read_results.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "eval/compare.h"
#include "eval/published.h"
#include "eval/results_file.h"
#include "support/task_scores.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

using test::task_scores;
using test::TempDir;

TEST(ReadResults, TasksOfTheHarnessAreThoseOfTheirNames) {
  const TempDir dir;
  Results ours;
  ours.model = "ours";
  ours.tasks = {task_scores("piqa", "CR", 0.5, 0.01), task_scores("hellaswag", "CR", 0.5, 0.01), task_scores("mine", "Law", 0.5, 0.01)};
  ours.tasks[1].metrics = {{.key = "acc,none", .value = 0.5}, {.key = "acc_norm,none", .value = 0.5}};
  ours.tasks[1].headline = 1;
  dir.write("harness.json", R"({"results": {"piqa": {"alias": "piqa", "acc,none": 0.6, "acc_stderr,none": 0.01},
    "hellaswag": {"acc,none": 0.4, "acc_norm,none": 0.7, "acc_norm_stderr,none": "N/A"}, "mmlu": {"acc,none": 0.3},
    "mine": {"acc,none": 0.6}, "wikitext": {"word_perplexity,none": 12.0}},
    "configs": {"piqa": {"task": "piqa", "group": ["multiple_choice"]}},
    "config": {"model": "hf", "model_args": "pretrained=EleutherAI/pythia-160m,dtype=float32"}})");
  const Results harness = load_results(dir.path("harness.json"));
  EXPECT_EQ(harness.model, "EleutherAI/pythia-160m");
  EXPECT_EQ(harness.find("piqa")->group, "CR");
  EXPECT_EQ(harness.find("hellaswag")->headline, 1u);
  EXPECT_FALSE(harness.find("wikitext")->metrics[0].higher_is_better);
  const Comparison c = compare(std::vector<Results>{ours, harness});
  EXPECT_EQ(std::count_if(c.rows.begin(), c.rows.end(), [](auto& r) { return r.name == "piqa"; }), 1);
  EXPECT_EQ(std::count_if(c.rows.begin(), c.rows.end(), [](auto& r) { return r.name == "other"; }), 0) << "mine is in Law here too";
  EXPECT_EQ(c.wins[0].losses, 3) << "each task once";
  EXPECT_EQ(c.wins[0].all(), 3);
  EXPECT_NEAR(c.rows[0].differences[0].value, 0.5 - 0.65, 1e-12);
  EXPECT_EQ(compare(std::vector<Results>{harness, published_result("HLAT-7B")}).wins[0].all(), 1) << "MMLU is whole";
}

TEST(ReadResults, ModelsOfTheHarnessHaveTheirNames) {
  const TempDir dir;
  const auto name = [&](const std::string& rest) {
    dir.write("h.json", R"({"results": {"piqa": {"acc,none": 0.6}}, )" + rest + "}");
    return load_results(dir.path("h.json")).model;
  };
  EXPECT_EQ(name(R"("model_name": "org/model", "config": {"model": "hf", "model_args": "pretrained=x"})"), "org/model");
  EXPECT_EQ(name(R"("config": {"model": "hf", "model_args": {"pretrained": "org/other", "dtype": "float"}})"), "org/other");
  EXPECT_EQ(name(R"("config": {"model": "hf"})"), dir.path("h.json"));
}

}  // namespace
}  // namespace hlat
