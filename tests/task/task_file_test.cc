// Task files: what they may say, and every mistake named with its line.
#include "task/task_file.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/message_of.h"
#include "support/task_of.h"

namespace hlat {
namespace {

using test::task_of;

const std::string kGood = R"(task: colours
group: mine
kind: choice
data: {file: a.jsonl}
prompt: "{{ q }}"
choices: [red, blue]
gold: "{{ gold }}"
metrics: [acc, acc_norm]
)";

std::string problems(const std::string& yaml) {
  return message_of([&] { task_of(yaml); });
}

TEST(TaskFile, InfoOfATask) {
  const Task task = task_of(kGood + "title: Colours\nheadline: acc_norm\nversion: 3\nin_group_mean: false\nfewshot: {count: 2}\n");
  const TaskInfo& info = task.info();
  EXPECT_EQ(info.name, "colours");
  EXPECT_EQ(info.title, "Colours");
  EXPECT_EQ(info.group, "mine");
  EXPECT_EQ(info.version, 3);
  EXPECT_EQ(info.shots, 2);
  EXPECT_FALSE(info.in_group_mean);
  EXPECT_EQ(info.kind, TaskKind::choice);
  EXPECT_EQ(info.origin, "test.yaml");
  ASSERT_EQ(info.metrics.size(), 2u);
  EXPECT_EQ(info.metrics[info.headline].key(), "acc_norm,none");
  EXPECT_TRUE(info.metrics[0].higher_is_better);
}

TEST(TaskFile, MetricsHaveTheirDirectionAndFilters) {
  const Task task = task_of(
      "task: t\ngroup: g\nkind: generate\ndata: {file: a.jsonl}\nprompt: '{{ q }}'\ntarget: '{{ a }}'\n"
      "filters: [{name: strict, regex: 'a(b)'}, {name: loose, strip: true}]\nmetrics: [exact_match]\nheadline: exact_match,loose\n");
  ASSERT_EQ(task.info().metrics.size(), 2u);
  EXPECT_EQ(task.info().metrics[0].key(), "exact_match,strict");
  EXPECT_EQ(task.info().headline, 1u);
  const Task other = task_of("task: t\ngroup: g\nkind: perplexity\ndata: {file: a.txt}\ntext: '{{ text }}'\nmetrics: [bits_per_byte]\n");
  EXPECT_FALSE(other.info().metrics[0].higher_is_better);
  EXPECT_EQ(other.info().metrics[0].aggregation, Aggregation::bits_per_weight);
}

TEST(TaskFile, UnknownKeysAreNamedWithTheirLine) {
  const std::string said = problems(kGood + "prompts: x\ndata2: 1\nfewshot:\n  count: 1\n  shots: 2\n");
  EXPECT_NE(said.find("test.yaml:9: task has no key 'prompts'; did you mean prompt?"), std::string::npos) << said;
  EXPECT_NE(said.find("test.yaml:10: task has no key 'data2'; did you mean data?"), std::string::npos) << said;
  EXPECT_NE(said.find("test.yaml:13: `fewshot` has no key 'shots'"), std::string::npos) << said;
  EXPECT_THROW(task_of(kGood + "prompts: x\n"), UsageError);
}

TEST(TaskFile, KeysOfOtherKindsAreUnknown) {
  EXPECT_NE(problems(kGood + "program: x\n").find("task has no key 'program'"), std::string::npos);
}

TEST(TaskFile, AllProblemsAreToldTogether) {
  const std::string said = problems("task: t\nkind: chioce\nmetrics: [acc, f1]\nversion: x\nchoices: [a, '{{ b | c }}']\nheadline: f2\n");
  EXPECT_NE(said.find("task has no `group`"), std::string::npos) << said;
  EXPECT_NE(said.find("test.yaml:2: kind cannot be 'chioce'; did you mean choice?"), std::string::npos) << said;
  EXPECT_NE(said.find("test.yaml:3: no metric 'f1' for this kind; there are acc, acc_norm"), std::string::npos) << said;
  EXPECT_NE(said.find("test.yaml:4: version must be a whole number"), std::string::npos) << said;
  EXPECT_NE(said.find("test.yaml:5: choices: {{ b | c }}: no function 'c'"), std::string::npos) << said;
  EXPECT_NE(said.find("test.yaml:6: headline 'f2' is none of the task's metrics"), std::string::npos) << said;
  EXPECT_NE(said.find("`data` names no `file`"), std::string::npos) << said;
  EXPECT_NE(said.find("needs `gold`"), std::string::npos) << said;
}

TEST(TaskFile, MistakesOfSourcesAndGeneration) {
  const auto in_data = [](const std::string& data) {
    return problems("task: t\ngroup: g\nkind: generate\nprompt: p\ntarget: x\nmetrics: [exact_match]\ndata: " + data + "\n");
  };
  EXPECT_NE(in_data("{file: a/*/b.csv}").find("one * in the last part of the name"), std::string::npos);
  EXPECT_NE(in_data("{file: a.csv, format: xml}").find("format cannot be 'xml'; there are by_name, jsonl, json, csv, text"),
            std::string::npos);
  EXPECT_NE(in_data("{file: a.txt, pattern: '('}").find("pattern '('"), std::string::npos);
  EXPECT_NE(in_data("{file: a.csv, labels: {file: b}}").find("`labels` has no `field`"), std::string::npos);
  EXPECT_NE(in_data("{file: a.csv}\nsubtasks: [a]").find("`subtasks` needs a *"), std::string::npos);
  EXPECT_NE(in_data("{file: a.csv}\ngenerate: {samples: 5}").find("several samples need a temperature above 0"), std::string::npos);
  EXPECT_NE(in_data("{file: a.csv}\nrewrite: [[a]]").find("an item of rewrite must be [pattern, replacement]"), std::string::npos);
  EXPECT_NE(in_data("{file: a.csv}\nignore: ['(']").find("pattern '('"), std::string::npos);
  EXPECT_NE(
      problems("task: t\ngroup: g\nkind: code\nprompt: p\nprogram: x\nmetrics: [pass@10]\ndata: {file: a}\n").find("at least 10 samples"),
      std::string::npos);
  EXPECT_NE(problems(kGood + "metrics2: []\n").find("did you mean metrics?"), std::string::npos);
}

}  // namespace
}  // namespace hlat
