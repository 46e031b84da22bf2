// From records to requests: prompts, delimiters, few-shot examples, subtasks, and broken examples named by file and line.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "base/error.h"
#include "support/message_of.h"
#include "support/task_of.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

using test::examples_of;
using test::task_of;
using test::TempDir;

const std::string kChoice = R"(task: t
group: g
kind: choice
data: {file: a.jsonl}
description: "About {{ subtask }}things.\n"
prompt: "Q: {{ q }}\nA:"
choices: "{{ options }}"
gold: "{{ gold }}"
metrics: [acc]
)";

std::string record(int i) {
  return "{\"q\": \"q" + std::to_string(i) + "\", \"options\": [\"x\", \"y\"], \"gold\": " + std::to_string(i % 2) + "}\n";
}

TEST(TaskExamples, ChoicesFollowThePromptAfterTheDelimiter) {
  const TempDir dir;
  dir.write("a.jsonl", record(0) + record(1));
  const auto examples = examples_of(task_of(kChoice), {.data = dir.path()});
  ASSERT_EQ(examples.size(), 2u);
  ASSERT_EQ(examples[1].requests.size(), 2u);
  EXPECT_EQ(examples[1].id, 1);
  EXPECT_EQ(examples[1].record["q"], "q1");
  EXPECT_EQ(examples[1].requests[0].kind, AskKind::score);
  EXPECT_EQ(examples[1].requests[0].context, "About things.\nQ: q1\nA:");
  EXPECT_EQ(examples[1].requests[1].continuation, " y");
}

TEST(TaskExamples, ContextsOfTheirOwnShareAContinuation) {
  const TempDir dir;
  dir.write("a.jsonl", R"({"s": "Ann met Bo because _ called. ", "o": ["Ann", "Bo"]})");
  const Task task = task_of(
      "task: t\ngroup: g\nkind: choice\ndata: {file: a.jsonl}\ncontexts: [\"{{ s | before('_') }}{{ o[0] }}\", \"{{ s | before('_') }}{{ "
      "o[1] }}\"]\n"
      "continuation: \"{{ s | after('_') | strip }}\"\ngold: '{{ 1 }}'\nmetrics: [acc]\n");
  const auto example = examples_of(task, {.data = dir.path()}).at(0);
  EXPECT_EQ(example.requests[1].context, "Ann met Bo because Bo");
  EXPECT_EQ(example.requests[0].continuation, " called.");
  EXPECT_EQ(example.requests[1].continuation, " called.");
}

TEST(TaskExamples, LimitTakesTheFirstAndChangesNoPrompt) {
  const TempDir dir;
  std::string text;
  for (int i = 0; i < 9; ++i) text += record(i);
  dir.write("a.jsonl", text);
  const Task task = task_of(kChoice + "fewshot: {count: 3}\n");
  const auto all = examples_of(task, {.data = dir.path()}), some = examples_of(task, {.data = dir.path(), .limit = 4});
  ASSERT_EQ(some.size(), 4u);
  for (size_t i = 0; i < some.size(); ++i) EXPECT_EQ(some[i].requests[0].context, all[i].requests[0].context);
}

// python3 -c 'import random; r = random.Random(1234); print([r.sample(range(6), 3) for _ in range(6)])'
TEST(TaskExamples, FewShotFromTheDataDrawsOneMoreAndLeavesTheQuestionOut) {
  const std::vector<std::vector<int>> drawn = {{3, 0, 4}, {0, 4, 5}, {5, 0, 4}, {2, 1, 0}, {0, 5, 2}, {5, 4, 3}};
  const TempDir dir;
  std::string text;
  for (int i = 0; i < 6; ++i) text += record(i);
  dir.write("a.jsonl", text);
  const auto examples = examples_of(task_of(kChoice + "fewshot: {count: 2}\n"), {.data = dir.path()});
  for (int i = 0; i < 6; ++i) {
    std::string wanted = "About things.\n";
    int left = 2;
    for (const int n : drawn[static_cast<size_t>(i)])
      if (n != i && left-- > 0) wanted += "Q: q" + std::to_string(n) + "\nA: " + (n % 2 == 0 ? "x" : "y") + "\n\n";
    EXPECT_EQ(examples[static_cast<size_t>(i)].requests[0].context, wanted + "Q: q" + std::to_string(i) + "\nA:") << i;
  }
}

TEST(TaskExamples, FewShotFromAnotherFileInOrderWithItsOwnTemplates) {
  const TempDir dir;
  dir.write("a.jsonl", record(5));
  dir.write("shots.json", R"({"list": [{"ask": "one", "say": "1"}, {"ask": "two", "say": "2"}, {"ask": "three", "say": "3"}]})");
  const Task task = task_of(kChoice +
                            "fewshot:\n  source: {file: shots.json, list: list}\n  count: 2\n  order: first\n  delimiter: \"\\n\"\n"
                            "  prompt: 'S: {{ ask }} ='\n  target: '{{ say }}'\n");
  EXPECT_EQ(examples_of(task, {.data = dir.path()}).at(0).requests[0].context, "About things.\nS: one = 1\nS: two = 2\nQ: q5\nA:");
  EXPECT_EQ(examples_of(task, {.data = dir.path(), .shots = 0}).at(0).requests[0].context, "About things.\nQ: q5\nA:");
  const std::string few = message_of([&] { examples_of(task, {.data = dir.path(), .shots = 4}); });
  EXPECT_NE(few.find("shots.json: 4 shots need 4 few-shot examples, and there are 3"), std::string::npos) << few;
}

TEST(TaskExamples, FewShotWrittenInTheTaskFile) {
  const TempDir dir;
  dir.write("a.jsonl", record(5));
  const Task task = task_of(kChoice + "fewshot:\n  count: 1\n  order: first\n  examples:\n    - {q: \"12\", options: [u, v], gold: 1}\n");
  EXPECT_EQ(examples_of(task, {.data = dir.path()}).at(0).requests[0].context, "About things.\nQ: 12\nA: v\n\nQ: q5\nA:");
}

TEST(TaskExamples, AStarMakesASubtaskOfEachFile) {
  const TempDir dir;
  std::filesystem::create_directory(dir.path("t"));
  dir.write("t/b_law_test.jsonl", record(0));
  dir.write("t/a_test.jsonl", record(1) + record(2));
  dir.write("t/README", "x");
  std::string yaml = kChoice;
  yaml.replace(yaml.find("a.jsonl"), 7, "t/*_test.jsonl");
  const Task task = task_of(yaml);
  const TaskOptions options = {.data = dir.path()};
  EXPECT_TRUE(task.info().has_subtasks);
  EXPECT_EQ(task.subtasks(options), (std::vector<std::string>{"t_a", "t_b_law"}));
  EXPECT_EQ(task.count("t_a", options), 2);
  EXPECT_EQ(task.examples("t_b_law", options).at(0).requests[0].context, "About b_lawthings.\nQ: q0\nA:");
  EXPECT_EQ(task_of(yaml + "subtasks: [a]\n").subtasks(options), (std::vector<std::string>{"t_a"}));
  const Task wrong = task_of(yaml + "subtasks: [a, c]\n");
  EXPECT_EQ(wrong.missing(options), (std::vector<std::string>{"t/c_test.jsonl"}));
}

TEST(TaskExamples, FieldsThatASubtaskSharesComeFromAFile) {
  const TempDir dir;
  dir.write("a.jsonl", record(0));
  dir.write("a.txt", "canary\n---\nAnswer well.\n\nQ: x\n");
  std::string yaml = kChoice;
  yaml.replace(yaml.find("{{ subtask }}things"), 19, "it: {{ head }}");
  const Task task = task_of(yaml + "shared: {file: a.txt, pattern: '(?s)---\\n(?<head>.*?)\\n\\nQ: '}\n");
  EXPECT_EQ(examples_of(task, {.data = dir.path()}).at(0).requests[0].context, "About it: Answer well..\nQ: q0\nA:");
}

TEST(TaskExamples, TheFirstAlternativeThatIsThereIsTaken) {
  const TempDir dir;
  std::string yaml = kChoice;
  yaml.replace(yaml.find("a.jsonl"), 7, "[one.jsonl, two.jsonl]");
  const Task task = task_of(yaml);
  EXPECT_EQ(task.missing({.data = dir.path()}), (std::vector<std::string>{"one.jsonl"}));
  EXPECT_NE(message_of([&] { task.subtasks({.data = dir.path()}); }).find("task t: one.jsonl is not in " + dir.path()), std::string::npos);
  dir.write("two.jsonl", record(2));
  EXPECT_TRUE(task.missing({.data = dir.path()}).empty());
  EXPECT_EQ(examples_of(task, {.data = dir.path()}).at(0).record["q"], "q2");
  dir.write("one.jsonl", record(1));
  EXPECT_EQ(examples_of(task, {.data = dir.path()}).at(0).record["q"], "q1");
}

TEST(TaskExamples, FewShotDataIsMissingOnlyWhereItIsNeeded) {
  const TempDir dir;
  dir.write("a.jsonl", record(0));
  const Task task = task_of(kChoice + "fewshot: {source: {file: train.jsonl}}\n");
  EXPECT_TRUE(task.missing({.data = dir.path()}).empty());
  EXPECT_EQ(task.missing({.data = dir.path(), .shots = 5}), (std::vector<std::string>{"train.jsonl"}));
}

TEST(TaskExamples, GenerationHasItsStopsLimitsAndSeeds) {
  const TempDir dir;
  dir.write("a.jsonl", "{\"p\": \"def f():\"}\n{\"p\": \"def g():\"}\n");
  const Task task = task_of(
      "task: t\ngroup: g\nkind: code\ndata: {file: a.jsonl}\nprompt: '{{ p }}'\nprogram: '{{ p }}{{ output }}'\n"
      "generate: {stop: [\"\\ndef\"], max_tokens: 99, samples: 3, temperature: 0.8, top_p: 0.95}\nmetrics: [pass@1]\n");
  const auto examples = examples_of(task, {.data = dir.path()});
  std::set<uint64_t> seeds;
  for (const Example& e : examples) {
    ASSERT_EQ(e.requests.size(), 3u);
    for (const TextRequest& r : e.requests) seeds.insert(r.sampling.seed);
  }
  EXPECT_EQ(seeds.size(), 6u) << "each sample draws for itself";
  const TextRequest& request = examples[0].requests[1];
  EXPECT_EQ(request.kind, AskKind::generate);
  EXPECT_EQ(request.context, "def f():");
  EXPECT_EQ(request.stop, std::vector<std::string>{"\ndef"});
  EXPECT_EQ(request.max_tokens, 99);
  EXPECT_EQ(request.sampling.temperature, 0.8);
  EXPECT_EQ(request.sampling.top_p, 0.95);
  EXPECT_EQ(examples_of(task, {.data = dir.path()})[0].requests[1].sampling.seed, request.sampling.seed);
  EXPECT_NE(examples_of(task, {.data = dir.path(), .sampling_seed = 1})[0].requests[1].sampling.seed, request.sampling.seed);
}

TEST(TaskExamples, BrokenExamplesAreToldTogetherAndTheTaskIsRefused) {
  const TempDir dir;
  dir.write("a.jsonl", record(0) + "{\"q\": \"x\", \"options\": [\"a\", \"b\"], \"gold\": 2}\n" +
                           "{\"options\": [\"a\", \"b\"], \"gold\": 0}\n" +
                           "{\"q\": \"x\", \"options\": [\"a\"], \"gold\": 0}\n{\"q\": \"x\", \"options\": [\"a\", \"\"], \"gold\": 0}\n" +
                           "{\"q\": \"x\", \"options\": [\"a\", \"b\"], \"gold\": \"A\"}\n" + record(1));
  const Task task = task_of(kChoice);
  const std::string said = message_of([&] { examples_of(task, {.data = dir.path()}); });
  EXPECT_NE(said.find("task t: broken examples:"), std::string::npos) << said;
  EXPECT_NE(said.find("a.jsonl:2: gold 2 is out of range: there are 2 choices"), std::string::npos) << said;
  EXPECT_NE(said.find("a.jsonl:3: no field 'q'; there are options, gold"), std::string::npos) << said;
  EXPECT_NE(said.find("a.jsonl:4: 1 choices"), std::string::npos) << said;
  EXPECT_NE(said.find("a.jsonl:5: an empty choice"), std::string::npos) << said;
  EXPECT_NE(said.find("a.jsonl:6: gold is a text"), std::string::npos) << said;
  EXPECT_THROW(examples_of(task, {.data = dir.path()}), UsageError);
}

TEST(TaskExamples, WhatCannotBeReadAndWhatCannotBeAskedAreToldTogether) {
  const TempDir dir;
  dir.write("a.jsonl", record(0) + "{\"q\": \"x\", \"options\": [\"a\", \"b\"], \"gold\": 2}\n{\"q\": \n" +
                           "{\"options\": [\"a\", \"b\"], \"gold\": 0}\n" + record(1));
  dir.write("s.jsonl", "{\"q\": \"x\"}\n");
  const Task task = task_of(kChoice + "fewshot: {source: {file: s.jsonl}, count: 1, order: first}\n");
  const std::string said = message_of([&] { examples_of(task, {.data = dir.path()}); });
  for (const char* line : {"a.jsonl:2: gold 2 is out of range", "a.jsonl:3: ", "a.jsonl:4: no field 'q'", "s.jsonl:1: no field 'options'"})
    EXPECT_NE(said.find(line), std::string::npos) << line << "\n" << said;
  EXPECT_EQ(said.find("s.jsonl:1"), said.rfind("s.jsonl:1")) << "once for all questions: " << said;
}

TEST(TaskExamples, RecordsEqualToTheQuestionAreCounted) {
  const TempDir dir;
  dir.write("a.jsonl", record(0) + record(0) + record(0) + record(1));
  const auto examples = examples_of(task_of(kChoice + "fewshot: {count: 2, order: first}\n"), {.data = dir.path()});
  EXPECT_EQ(examples[0].lacking_shots, 2) << "the first three are the question";
  EXPECT_EQ(examples[3].lacking_shots, 0);
}

TEST(TaskExamples, TheirFilesAreKnown) {
  const TempDir dir;
  dir.write("a.jsonl", record(0));
  dir.write("s.jsonl", record(1));
  const Task task = task_of(kChoice + "fewshot: {source: {file: s.jsonl}, count: 1}\n");
  EXPECT_EQ(task.files("t", {.data = dir.path()}), (std::vector<std::string>{dir.path("a.jsonl"), dir.path("s.jsonl")}));
  EXPECT_EQ(task.files("t", {.data = dir.path(), .shots = 0}), std::vector<std::string>{dir.path("a.jsonl")});
}

TEST(TaskExamples, ABrokenFewShotExampleIsNamed) {
  const TempDir dir;
  dir.write("a.jsonl", record(0));
  dir.write("s.jsonl", record(1) + "{\"q\": \"x\"}\n");
  const Task task = task_of(kChoice + "fewshot: {source: {file: s.jsonl}, count: 2, order: first}\n");
  EXPECT_NE(message_of([&] { examples_of(task, {.data = dir.path()}); }).find("s.jsonl:2: no field 'options'"), std::string::npos);
}

TEST(TaskExamples, TruthsAreAsManyAsTheChoices) {
  const TempDir dir;
  dir.write("a.jsonl",
            "{\"q\": \"x\", \"options\": [\"a\", \"b\"], \"t\": [1]}\n{\"q\": \"x\", \"options\": [\"a\", \"b\"], \"t\": [0, 0]}\n");
  std::string yaml = kChoice;
  yaml.replace(yaml.find("gold: \"{{ gold }}\""), 18, "truths: \"{{ t }}\"");
  const std::string said = message_of([&] { examples_of(task_of(yaml), {.data = dir.path()}); });
  EXPECT_NE(said.find("a.jsonl:1: truths must be a list with 0 or 1 for each of the 2 choices"), std::string::npos) << said;
  EXPECT_NE(said.find("a.jsonl:2: no choice is true"), std::string::npos) << said;
}

TEST(TaskExamples, FieldsOfProgramsAndAnswersAreCheckedBeforeAnythingIsAsked) {
  const TempDir dir;
  dir.write("a.jsonl", "{\"p\": \"x\"}\n");
  const Task code =
      task_of("task: t\ngroup: g\nkind: code\ndata: {file: a.jsonl}\nprompt: '{{ p }}'\nprogram: '{{ test }}'\nmetrics: [pass@1]\n");
  EXPECT_NE(message_of([&] { examples_of(code, {.data = dir.path()}); }).find("a.jsonl:1: no field 'test'"), std::string::npos);
  const Task generate =
      task_of("task: t\ngroup: g\nkind: generate\ndata: {file: a.jsonl}\nprompt: '{{ p }}'\ntarget: '{{ a }}'\nmetrics: [exact_match]\n");
  EXPECT_NE(message_of([&] { examples_of(generate, {.data = dir.path()}); }).find("a.jsonl:1: no field 'a'"), std::string::npos);
}

}  // namespace
}  // namespace hlat
