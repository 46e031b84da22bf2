// The built-in tasks on the real evaluation sets: every prompt, continuation and right answer against a second reading of the definitions
// (tools/make_task_prompts.py, tests/fixtures/task_prompts.json).
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "support/paths.h"
#include "support/task_of.h"
#include "support/temp_dir.h"
#include "task/library.h"

namespace hlat {
namespace {

const std::filesystem::path kData = test::source_path("../shared/data/eval");

class RealTask : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kData)) GTEST_SKIP() << "without ../shared/data/eval";
  }
};

nlohmann::json fixture() {
  static const nlohmann::json all = nlohmann::json::parse(test::slurp(test::source_path("tests/fixtures/task_prompts.json")));
  return all;
}

std::vector<std::string> tasks_in_fixture() {
  std::vector<std::string> out;
  const nlohmann::json all = fixture();
  for (const auto& item : all.items()) out.push_back(item.key());
  return out;
}

uint32_t checksum(uint32_t before, const std::string& text) {
  return static_cast<uint32_t>(crc32_z(before, reinterpret_cast<const Bytef*>(text.data()), text.size()));
}

TEST_P(RealTask, HeavyAsksWhatItsDefinitionSays) {
  TaskLibrary library;
  const Task& task = *library.find({GetParam()}).at(0);
  const TaskOptions options = {.data = kData};
  int64_t subtasks = 0, examples = 0, requests = 0;
  uint32_t sum = 0;
  for (const std::string& subtask : task.subtasks(options)) {
    ++subtasks;
    for (const Example& example : task.examples(subtask, options)) {
      ++examples;
      for (const TextRequest& r : example.requests) {
        ++requests;
        sum = checksum(sum, r.context + '\0' + r.continuation + '\0');
      }
      const std::vector<Answer> answers(example.requests.size());
      sum = checksum(sum, task.judge(example, answers, [](const std::string&) { return true; }).target + "\n");
    }
  }
  const nlohmann::json wanted = fixture()[GetParam()];
  EXPECT_EQ(subtasks, wanted["subtasks"]);
  EXPECT_EQ(examples, wanted["examples"]);
  EXPECT_EQ(requests, wanted["requests"]);
  EXPECT_EQ(sum, wanted["checksum"]);
}

INSTANTIATE_TEST_SUITE_P(Definitions, RealTask, testing::ValuesIn(tasks_in_fixture()), [](const auto& task) { return task.param; });

TEST(RealTasks, HeavyTheListCountsThem) {
  if (!std::filesystem::exists(kData)) GTEST_SKIP() << "without ../shared/data/eval";
  const nlohmann::json wanted = fixture();
  for (const TaskListing& row : TaskLibrary().list({.data = kData})) {
    EXPECT_TRUE(row.problem.empty()) << row.problem;
    if (!wanted.contains(row.info.name)) continue;
    EXPECT_EQ(row.examples, wanted[row.info.name]["examples"]) << row.info.name;
    EXPECT_EQ(row.subtasks, wanted[row.info.name]["subtasks"]) << row.info.name;
  }
}

// HellaSwag as published (the first file has 1000 records of it) and HellaSwag cleaned are the same questions: what the template language
// can do with the published form.
TEST(RealTasks, HellaSwagAsPublishedIsCleanedByATemplate) {
  if (!std::filesystem::exists(kData)) GTEST_SKIP() << "without ../shared/data/eval";
  const Task task = test::task_of(R"yaml(
task: published
group: CR
kind: choice
data: {file: hellaswag/original_format_1000.jsonl}
prompt: "{{ (activity_label + ': ' + ctx_a + ' ' + (ctx_b | capitalize)) | rewrite | strip }}"
choices: "{{ endings | rewrite | strip }}"
gold: "{{ label | int }}"
rewrite:
  - ['\A\s+|\s+\z', '']
  - [' \[title\]', '. ']
  - ['\[.*?\]', '']
  - ['  ', ' ']
metrics: [acc_norm]
)yaml");
  const TaskOptions options = {.data = kData};
  std::map<std::string, const Example*> cleaned;
  TaskLibrary library;
  const auto all = library.find({"hellaswag"}).at(0)->examples("hellaswag", options);
  for (const Example& e : all) cleaned[e.requests[0].context + "|" + e.requests[0].continuation] = &e;
  size_t found = 0;
  for (const Example& e : task.examples("published", options)) {
    const auto same = cleaned.find(e.requests[0].context + "|" + e.requests[0].continuation);
    if (same == cleaned.end()) continue;
    ++found;
    for (size_t i = 0; i < e.requests.size(); ++i) EXPECT_EQ(e.requests[i].continuation, same->second->requests[i].continuation);
    EXPECT_EQ(e.record["label"], same->second->record["gold"]);
  }
  EXPECT_GE(found, 990u);
}

// HumanEval's own solutions make programs that hold the prompt, the body and the call of the test.
TEST(RealTasks, HumanEvalProgramsAreWhole) {
  if (!std::filesystem::exists(kData)) GTEST_SKIP() << "without ../shared/data/eval";
  TaskLibrary library;
  const Task& task = *library.find({"humaneval"}).at(0);
  const Example example = task.examples("humaneval", {.data = kData, .limit = 1}).at(0);
  const auto field = [&](const char* name) { return example.record[name].get<std::string>(); };
  const std::vector<Answer> answers = {{.text = field("canonical_solution")}};
  std::string ran;
  const Judgement judged = task.judge(example, answers, [&](const std::string& program) {
    ran = program;
    return true;
  });
  EXPECT_EQ(ran, field("prompt") + field("canonical_solution") + "\n" + field("test") + "\ncheck(" + field("entry_point") + ")");
  EXPECT_EQ(judged.values[0].value, 1);
  EXPECT_EQ(task.info().metrics[0].key(), "pass@1,create_test");
}

}  // namespace
}  // namespace hlat
