// The tasks there are: built in, a user's own, found by name, group or file, listed with what is missing.
#include "task/library.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "support/message_of.h"
#include "support/paths.h"
#include "support/temp_dir.h"
#include "task/embedded_tasks.h"

namespace hlat {
namespace {

using test::TempDir;

const std::string kMine =
    "task: mine\ngroup: medical\nkind: generate\ndata: {file: m.jsonl}\nprompt: '{{ q }}'\ntarget: '{{ a }}'\nmetrics: [exact_match]\n";

std::vector<std::string> names_of(const std::vector<const Task*>& tasks) {
  std::vector<std::string> out;
  for (const Task* t : tasks) out.push_back(t->info().name);
  return out;
}

TEST(TaskLibrary, BuiltInTasksHaveTheNamesOfTheirFiles) {
  const std::vector<std::string> names = TaskLibrary().names();
  ASSERT_EQ(names.size(), embedded_tasks().size());
  for (const EmbeddedTask& t : embedded_tasks()) {
    EXPECT_TRUE(std::find(names.begin(), names.end(), t.name) != names.end()) << t.name;
    EXPECT_NE(t.text.find("task: " + std::string(t.name) + "\n"), std::string_view::npos) << t.name;
  }
}

TEST(TaskLibrary, TheTasksOfThePaperAreThere) {
  TaskLibrary library;
  const auto group = [&](const std::string& name) { return names_of(library.find({name})); };
  EXPECT_EQ(group("MMLU"), std::vector<std::string>{"mmlu"});
  EXPECT_EQ(group("BBH"), std::vector<std::string>{"bbh_fewshot"});
  EXPECT_EQ(group("CR"), (std::vector<std::string>{"arc_challenge", "arc_easy", "hellaswag", "openbookqa", "piqa", "winogrande"}));
  EXPECT_EQ(group("WK"), (std::vector<std::string>{"nq_open", "triviaqa"}));
  EXPECT_EQ(group("RC"), std::vector<std::string>{"boolq"});
  EXPECT_EQ(group("Math"), std::vector<std::string>{"gsm8k"});
  EXPECT_EQ(group("Code"), std::vector<std::string>{"humaneval"});
  EXPECT_EQ(group("truth and bias"),
            (std::vector<std::string>{"crows_pairs_english", "crows_pairs_french", "truthfulqa_mc1", "truthfulqa_mc2"}));
  EXPECT_EQ(group("LM"), (std::vector<std::string>{"lambada_openai", "wikitext"}));
  for (const auto& [name, shots] : {std::pair("mmlu", 5), {"bbh_fewshot", 3}, {"nq_open", 5}, {"triviaqa", 5}, {"gsm8k", 8}, {"piqa", 0}})
    EXPECT_EQ(library.find({name})[0]->info().shots, shots) << name;
}

TEST(TaskLibrary, AUsersFolderAddsTasksAndReplacesThem) {
  const TempDir dir;
  dir.write("a.yaml", kMine);
  dir.write("notes.txt", "no task");
  dir.write("b.yaml", "task: piqa\ninclude: piqa\ntitle: My PIQA\ndata: {file: p.jsonl}\nfewshot: null\n");
  dir.write("c.yaml", "task: mine_too\ninclude: mine\nignore_case: true\n");
  TaskLibrary library(dir.path());
  const auto tasks = library.find({"mine", "piqa", "mine_too", "mine"});
  EXPECT_EQ(names_of(tasks), (std::vector<std::string>{"mine", "piqa", "mine_too"})) << "no task twice";
  EXPECT_EQ(tasks[1]->info().title, "My PIQA");
  EXPECT_EQ(tasks[1]->info().metrics.size(), 2u) << "what the file does not name is as in the task it includes";
  EXPECT_EQ(tasks[1]->missing({.data = dir.path()}), (std::vector<std::string>{"p.jsonl"}));
  EXPECT_EQ(names_of(library.find({"medical"})), (std::vector<std::string>{"mine", "mine_too", "mmlu_medical"}));
}

TEST(TaskLibrary, ATaskByThePathOfItsFile) {
  const TempDir dir;
  TaskLibrary library;
  EXPECT_EQ(names_of(library.find({dir.write("x.yaml", kMine), "piqa"})), (std::vector<std::string>{"mine", "piqa"}));
  EXPECT_THROW(library.find({dir.path("absent.yaml")}), UsageError);
}

TEST(TaskLibrary, UnknownTasksAreNamedWithWhatMayBeMeant) {
  TaskLibrary library;
  const std::string said = message_of([&] { library.find({"piqa", "hellaswga", "pairs", "zzzzzzzzzzzz"}); });
  EXPECT_NE(said.find("unknown task 'hellaswga'; did you mean hellaswag?"), std::string::npos) << said;
  EXPECT_NE(said.find("unknown task 'pairs'; there are crows_pairs_english, crows_pairs_french"), std::string::npos) << said;
  EXPECT_NE(said.find("unknown task 'zzzzzzzzzzzz'; there are the groups CR, "), std::string::npos) << said;
  EXPECT_NE(said.find(", and the tasks arc_challenge, arc_easy"), std::string::npos) << said;
  EXPECT_THROW(library.find({"hellaswga"}), UsageError);
}

TEST(TaskLibrary, GroupsAreFoundInAnyCaseAndBlanksDoNotCount) {
  TaskLibrary library;
  EXPECT_EQ(names_of(library.find({"wk", " Truth and Bias"})).size(), 6u);
  EXPECT_EQ(names_of(library.find({"piqa", " openbookqa "})), (std::vector<std::string>{"piqa", "openbookqa"}));
  EXPECT_EQ(split_task_names(" CR, boolq ,,mmlu"), (std::vector<std::string>{"CR", "boolq", "mmlu"}));
  EXPECT_TRUE(split_task_names(" , ").empty());
}

TEST(TaskLibrary, ADataFolderThatIsNoneIsNamed) {
  const TempDir dir;
  dir.write("file", "");
  EXPECT_EQ(message_of([&] { check_data_folder(dir.path("none"), "--data"); }), "--data " + dir.path("none") + ": there is no such folder");
  EXPECT_EQ(message_of([&] { check_data_folder(dir.path("file"), "eval.data"); }), "eval.data " + dir.path("file") + ": is not a folder");
  EXPECT_NO_THROW(check_data_folder(dir.path(), "--data"));
}

TEST(TaskLibrary, WrongFilesAreNamed) {
  const auto said = [](const std::string& text) {
    const TempDir dir;
    dir.write("a.yaml", text);
    return message_of([&] { TaskLibrary(dir.path()); });
  };
  EXPECT_NE(said("task: [").find("a.yaml:1: "), std::string::npos);
  EXPECT_NE(said("group: x\n").find("a.yaml: no `task: NAME`"), std::string::npos);
  EXPECT_NE(said("task: x\ninclude: nothing\n").find("a.yaml: include: there is no task 'nothing'"), std::string::npos);
  EXPECT_NE(said("task: x\ninclude: piqa\nchoises: [a]\n").find("a.yaml:3: task has no key 'choises'; did you mean choices?"),
            std::string::npos);
  EXPECT_NE(message_of([] { TaskLibrary("no/such/folder"); }).find("no/such/folder"), std::string::npos);
  const TempDir twice;
  twice.write("a.yaml", kMine);
  twice.write("b.yaml", kMine);
  EXPECT_NE(message_of([&] { TaskLibrary(twice.path()); }).find("task mine is in "), std::string::npos);
  const TempDir circle;
  circle.write("a.yaml", "task: a\ninclude: b\n");
  circle.write("b.yaml", "task: b\ninclude: a\n");
  EXPECT_NE(message_of([&] { TaskLibrary(circle.path()); }).find("include: more than"), std::string::npos);
}

// docs/tasks.md shows how a medical, a legal and a scientific set are added: its files are good, and ask what it says.
TEST(TaskLibrary, TheExamplesOfTheManualWork) {
  const TempDir tasks, data;
  const std::string manual = test::slurp(test::source_path("docs/tasks.md"));
  int count = 0;
  for (size_t at = manual.find("```yaml\n"); at != std::string::npos; at = manual.find("```yaml\n", at + 1)) {
    const size_t begin = at + 8;
    tasks.write(std::to_string(count++) + ".yaml", manual.substr(begin, manual.find("```", begin) - begin));
  }
  EXPECT_EQ(count, 3);
  TaskLibrary library(tasks.path());
  const auto found = library.find({"medqa", "clauses", "mmlu_physics"});
  std::filesystem::create_directory(data.path("medqa"));
  const std::string record = R"({"stem": "A patient with ...", "options": {"A": "Aspirin", "B": "Heparin", "C": "Warfarin"}, "key": "B"})";
  data.write("medqa/test.jsonl", record);
  std::string shots;
  for (int i = 0; i < 3; ++i) shots += R"({"stem": "s)" + std::to_string(i) + R"(", "options": {"A": "x", "B": "y"}, "key": "A"})" + "\n";
  data.write("medqa/train.jsonl", shots);
  const Example example = found[0]->examples("medqa", {.data = data.path()}).at(0);
  const std::string& context = example.requests[0].context;
  EXPECT_TRUE(context.starts_with("The following are questions of a medical examination.\n\nQuestion: s")) << context;
  EXPECT_TRUE(context.ends_with("Answer: x\n\nQuestion: A patient with ...\nAnswer:")) << context;
  EXPECT_EQ(example.requests[1].continuation, " Heparin");
  EXPECT_EQ(found[0]->judge(example, std::vector<Answer>(3)).target, "1");
}

TEST(TaskLibrary, TheListHasSizesMissingDataAndBrokenFiles) {
  const TempDir data, tasks;
  tasks.write("a.yaml", kMine);
  tasks.write("b.yaml", "task: broken\ninclude: mine\ndata: {file: broken.jsonl}\n");
  data.write("m.jsonl", "{\"q\": 1, \"a\": 2}\n{\"q\": 1, \"a\": 2}\n");
  data.write("broken.jsonl", "{\n");
  const auto rows = TaskLibrary(tasks.path()).list({.data = data.path()});
  const auto row = [&](const std::string& name) {
    return *std::find_if(rows.begin(), rows.end(), [&](const TaskListing& r) { return r.info.name == name; });
  };
  EXPECT_EQ(row("mine").examples, 2);
  EXPECT_EQ(row("mine").subtasks, 1);
  EXPECT_TRUE(row("mine").missing.empty());
  EXPECT_NE(row("broken").problem.find("broken.jsonl:1"), std::string::npos);
  EXPECT_EQ(row("mmlu").missing, (std::vector<std::string>{"mmlu/test/*_test.csv"}));
  EXPECT_EQ(row("mmlu").examples, 0);
}

}  // namespace
}  // namespace hlat
