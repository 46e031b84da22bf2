// The run over tasks, with a model whose answers are a function of the ids: numbers, resuming at any sample, errors that cost no results,
// several ranks.
#include "eval/task_run.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/message_of.h"
#include "support/small_tasks.h"
#include "support/thread_comm.h"

namespace hlat {
namespace {

using test::slurp;
using test::SmallTasks;

const std::vector<std::string> kAll = {"pick", "parts", "tell", "read"};

void expect_same(const TaskRunResult& a, const TaskRunResult& b) {
  ASSERT_EQ(a.tasks.size(), b.tasks.size());
  for (size_t t = 0; t < a.tasks.size(); ++t) {
    EXPECT_EQ(a.tasks[t].error, b.tasks[t].error);
    ASSERT_EQ(a.tasks[t].metrics.size(), b.tasks[t].metrics.size());
    for (size_t m = 0; m < a.tasks[t].metrics.size(); ++m) {
      EXPECT_EQ(a.tasks[t].metrics[m].value, b.tasks[t].metrics[m].value) << a.tasks[t].info.name;
      EXPECT_EQ(a.tasks[t].metrics[m].count, b.tasks[t].metrics[m].count);
    }
  }
}

TEST(TaskRun, NumbersOfAllKindsOfTasks) {
  SmallTasks small;
  auto model = small.model();
  const TaskRunResult r = small.run(model, kAll, small.options());
  ASSERT_EQ(r.tasks.size(), 4u);
  EXPECT_FALSE(r.stopped);
  for (const TaskResult& t : r.tasks) EXPECT_EQ(t.error, "") << t.info.name;
  EXPECT_EQ(r.tasks[0].metrics.size(), 2u);
  EXPECT_EQ(r.tasks[0].examples(), test::kSmallExamples);
  ASSERT_EQ(r.tasks[1].subtasks.size(), 2u);
  EXPECT_EQ(r.tasks[1].metrics[0].count, 8);
  const double mean = (r.tasks[1].subtasks[0].metrics[0].value + r.tasks[1].subtasks[1].metrics[0].value) / 2;
  EXPECT_DOUBLE_EQ(r.tasks[1].metrics[0].value, mean) << "subtasks weighted by size";
  EXPECT_GT(r.tasks[3].metrics[0].value, 1);
}

TEST(TaskRun, ChunksDoNotChangeTheNumbers) {
  SmallTasks small;
  auto one = small.model(), many = small.model();
  TaskRunOptions whole = small.options();
  whole.chunk_tokens = 1 << 20;
  expect_same(small.run(one, kAll, small.options()), small.run(many, kAll, whole));
}

TEST(TaskRun, ResumedAfterAnySampleItLeavesTheSameFilesAndAsksNothingTwice) {
  SmallTasks small;
  auto model = small.model();
  const TaskRunResult whole = small.run(model, kAll, small.options("whole"));
  const size_t all = model.asked();
  const size_t samples = 3 * test::kSmallExamples + 8;
  for (size_t killed = 0; killed <= samples; ++killed) {
    const std::string out = "killed" + std::to_string(killed);
    auto first = small.model(), second = small.model();
    size_t chunks = 0;
    const TaskRunResult part = small.run(first, kAll, small.options(out), {.stop = [&] { return chunks++ == killed; }});
    EXPECT_EQ(part.stopped, killed < samples);
    const TaskRunResult rest = small.run(second, kAll, small.options(out));
    expect_same(rest, whole);
    EXPECT_EQ(first.asked() + second.asked(), all);
    for (const std::string& task : kAll)
      EXPECT_EQ(slurp(small.dir().path(out + "/" + task + ".jsonl")), slurp(small.dir().path("whole/" + task + ".jsonl")));
  }
}

TEST(TaskRun, ATornLastLineIsIgnored) {
  SmallTasks small;
  auto model = small.model(), again = small.model();
  const TaskRunResult whole = small.run(model, {"pick"}, small.options("out"));
  const std::string file = small.dir().path("out/pick.jsonl"), text = slurp(file);
  std::filesystem::resize_file(file, text.size() - 20);
  expect_same(small.run(again, {"pick"}, small.options("out")), whole);
  EXPECT_EQ(again.asked(), 2u) << "the two choices of the last example";
  EXPECT_EQ(slurp(file), text);
}

TEST(TaskRun, OnlyWhatChangedIsAskedAgain) {
  SmallTasks small;
  auto model = small.model(), more = small.model(), other = small.model(), changed = small.model();
  small.run(model, {"pick"}, small.options("out"));
  small.write_pick(test::kSmallExamples + 2);
  small.run(more, {"pick"}, small.options("out"));
  EXPECT_EQ(more.asked(), 4u) << "two new records with two choices";
  std::string text = slurp(small.dir().path("data/pick.jsonl"));
  text.replace(text.find("thing number 3"), 5, "THING");
  small.dir().write("data/pick.jsonl", text);
  small.run(changed, {"pick"}, small.options("out"));
  EXPECT_EQ(changed.asked(), 2u) << "one record";
  TaskRunOptions by = small.options("out");
  by.by = "model-2";
  small.run(other, {"pick"}, by);
  EXPECT_EQ(other.asked(), 2u * (test::kSmallExamples + 2)) << "another model";
}

TEST(TaskRun, ALineHasWhatWasAskedAnsweredAndJudged) {
  SmallTasks small;
  auto model = small.model();
  small.run(model, {"pick", "tell"}, small.options("out"));
  const auto first = [&](const std::string& task) {
    const std::string text = slurp(small.dir().path("out/" + task + ".jsonl"));
    return nlohmann::json::parse(text.substr(0, text.find('\n')));
  };
  const nlohmann::json pick = first("pick"), tell = first("tell");
  EXPECT_EQ(pick["task"], "pick");
  EXPECT_EQ(pick["doc_id"], 0);
  EXPECT_EQ(pick["context"], "Q: what is thing number 0\nA:");
  ASSERT_EQ(pick["requests"].size(), 2u);
  EXPECT_EQ(pick["requests"][0]["continuation"], " the 0th");
  EXPECT_LT(pick["requests"][0]["logprob"].get<double>(), 0);
  EXPECT_TRUE(pick["requests"][0]["greedy"].is_boolean());
  EXPECT_EQ(pick["doc"]["a"], "the 0th");
  EXPECT_TRUE(pick["metrics"].contains("acc_norm,none"));
  EXPECT_TRUE(tell["requests"][0]["text"].is_string());
  EXPECT_EQ(tell["requests"][0]["text"].get<std::string>().find('e'), std::string::npos) << "without the stop string";
  EXPECT_EQ(tell["target"], "the 0th");
}

TEST(TaskRun, AnErrorCostsNoOtherTask) {
  SmallTasks small;
  small.dir().write("tasks/lost.yaml",
                    "task: lost\ntitle: Lost\ngroup: CR\nversion: 1\nkind: choice\ndata: {file: lost.jsonl}\n"
                    "prompt: \"{{ q }}\"\nchoices: [\"{{ a }}\", \"{{ b }}\"]\ngold: \"{{ gold }}\"\nmetrics: [acc]\n");
  auto model = small.model();
  std::vector<std::string> finished;
  TaskRunHooks hooks{.finished = [&](const TaskResult& r) { finished.push_back(r.info.name); }};
  std::filesystem::copy_file(small.dir().path("data/pick.jsonl"), small.dir().path("data/lost.jsonl"));
  const auto tasks = small.find({"pick", "lost", "parts", "tell"});
  small.dir().write("data/lost.jsonl", SmallTasks::records(3, "x") + "{\"q\": 1}\n");
  std::ofstream(small.dir().path("data/parts/two.jsonl")) << "no record\n";
  TaskRunResult r = small.run(model, {"pick", "lost", "parts", "tell"}, small.options(), hooks);
  ASSERT_EQ(r.tasks.size(), 4u);
  EXPECT_EQ(finished, (std::vector<std::string>{"pick", "lost", "parts", "tell"}));
  EXPECT_EQ(r.tasks[0].error, "");
  EXPECT_NE(r.tasks[1].error.find("lost.jsonl"), std::string::npos) << r.tasks[1].error;
  EXPECT_NE(r.tasks[2].error.find("two.jsonl"), std::string::npos) << r.tasks[2].error;
  EXPECT_TRUE(r.tasks[2].metrics.empty());
  EXPECT_EQ(r.tasks[2].subtasks[0].metrics.size(), 1u) << "the other part has its number";
  EXPECT_EQ(r.tasks[3].error, "");
}

TEST(TaskRun, NumbersThatAreNotFiniteAreTheTasksError) {
  SmallTasks small;
  auto model = small.model();
  model.break_after(5);
  const TaskRunResult r = small.run(model, {"pick", "tell"}, small.options("out"));
  EXPECT_NE(r.tasks[0].error.find("record 2: the log-likelihood is nan"), std::string::npos) << r.tasks[0].error;
  EXPECT_EQ(r.tasks[1].error, "");
  auto sound = small.model();
  EXPECT_EQ(small.run(sound, {"pick"}, small.options("out")).tasks[0].subtasks[0].reused, 2) << "what came before is kept";
}

TEST(TaskRun, OverLongRequestsAreCountedAndTold) {
  SmallTasks small;
  auto model = small.model(10);
  const TaskRunResult r = small.run(model, {"pick", "tell"}, small.options());
  ASSERT_EQ(r.tasks[0].error, "");
  ASSERT_EQ(r.tasks[0].warnings().size(), 1u);
  EXPECT_NE(r.tasks[0].warnings()[0].find("cut on the left; the first: pick, record 0"), std::string::npos) << r.tasks[0].warnings()[0];
  ASSERT_EQ(r.tasks[1].warnings().size(), 2u);
  EXPECT_NE(r.tasks[1].warnings()[1].find("7 requests get fewer new tokens"), std::string::npos) << r.tasks[1].warnings()[1];
  auto tiny = small.model(2);
  const TaskResult windows = small.run(tiny, {"pick"}, small.options()).tasks[0];
  EXPECT_EQ(windows.error, "") << "continuations that are longer than the model go on in windows";
  EXPECT_GT(tiny.asked(), 2u * test::kSmallExamples);
}

TEST(TaskRun, ProgramsAreNotRunWithoutARunner) {
  SmallTasks small;
  small.dir().write("tasks/code.yaml",
                    "task: code\ntitle: Code\ngroup: Code\nversion: 1\nkind: code\ndata: {file: pick.jsonl}\n"
                    "prompt: \"{{ q }}\"\nprogram: \"{{ output }}\"\ngenerate: {max_tokens: 4}\nmetrics: [pass@1]\n");
  auto model = small.model();
  EXPECT_NE(small.run(model, {"code"}, small.options()).tasks[0].error.find("not allowed"), std::string::npos);
  EXPECT_EQ(model.asked(), 0u);
  TaskRunOptions options = small.options();
  options.run_program = [](const std::string& program) { return program.size() % 2 == 0; };
  options.judge_threads = 3, options.chunk_tokens = 1 << 20;
  const TaskRunResult threads = small.run(model, {"code"}, options);
  options.judge_threads = 1;
  expect_same(threads, small.run(model, {"code"}, options));
  EXPECT_EQ(threads.tasks[0].error, "");
}

TEST(TaskRun, ProgressTellsExamples) {
  SmallTasks small;
  auto model = small.model();
  std::vector<std::pair<size_t, int64_t>> told;
  small.run(model, {"pick", "parts"}, small.options(), {.progress = [&](size_t t, int64_t n) { told.emplace_back(t, n); }});
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
  EXPECT_EQ(told.back(), (std::pair<size_t, int64_t>{1, 8}));
}

TEST(TaskRun, DataIsCheckedBeforeAnythingIsAsked) {
  SmallTasks small;
  const auto tasks = small.find(kAll);
  const std::vector<CheckedTask> checked = check_examples(tasks, small.options().tasks);
  ASSERT_EQ(checked.size(), kAll.size());
  EXPECT_EQ(checked[1].examples, 8) << "of all parts";
  EXPECT_EQ(checked[0].first.id, 0);
  EXPECT_FALSE(checked[0].first.requests.empty());
  TaskOptions limited = small.options().tasks;
  limited.limit = 2;
  EXPECT_EQ(check_examples(tasks, limited)[0].examples, 2);
  std::ofstream(small.dir().path("data/parts/two.jsonl")) << "no record\n";
  small.dir().write("data/pick.jsonl", "{\"q\": 1}\n");
  const std::string said = message_of([&] { check_examples(tasks, small.options().tasks); });
  for (const char* place : {"pick.jsonl:1: ", "two.jsonl:1: "}) EXPECT_NE(said.find(place), std::string::npos) << said;
}

TEST(TaskRun, StoppedItTellsHowManyExamplesAreKept) {
  SmallTasks small;
  auto model = small.model();
  TaskRunOptions options = small.options("out");
  options.chunk_tokens = 1;
  int chunks = 0;
  const TaskRunHooks hooks{.stop = [&] { return ++chunks > 6; }};
  const TaskRunResult r = small.run(model, {"parts"}, options, hooks);
  EXPECT_TRUE(r.stopped);
  EXPECT_EQ(r.kept, 6) << "of both parts";
  chunks = 6;
  EXPECT_EQ(small.run(model, {"parts"}, options, hooks).kept, 6) << "those of the run before";
}

TEST(TaskRun, QuestionsThatLackFewShotExamplesAreTold) {
  SmallTasks small;
  small.dir().write("tasks/twins.yaml",
                    "task: twins\ntitle: Twins\ngroup: CR\nversion: 1\nkind: choice\ndata: {file: twins.jsonl}\nfewshot: {count: 2}\n"
                    "prompt: \"{{ q }}\"\nchoices: [\"{{ a }}\", \"{{ b }}\"]\ngold: \"{{ gold }}\"\nmetrics: [acc]\n");
  small.dir().write("data/twins.jsonl", SmallTasks::records(1, "x") + SmallTasks::records(1, "x") + SmallTasks::records(1, "x"));
  auto model = small.model();
  const TaskRunResult r = small.run(model, {"twins"}, small.options());
  ASSERT_EQ(r.tasks[0].error, "");
  ASSERT_EQ(r.tasks[0].warnings().size(), 1u);
  EXPECT_NE(r.tasks[0].warnings()[0].find("3 questions have fewer than 2 few-shot examples"), std::string::npos)
      << r.tasks[0].warnings()[0];
}

TEST(TaskRun, RanksAnswerTogetherWhatRank0Reads) {
  SmallTasks small;
  auto alone = small.model();
  const TaskRunResult one = small.run(alone, kAll, small.options());
  const auto tasks = small.find(kAll);
  std::vector<size_t> asked(3);
  run_thread_ranks(3, [&](Comm& world) {
    auto model = small.model();
    TextModel text(model, small.tokenizer(), small.rules(), world);
    // Only rank 0 knows the tasks.
    const TaskRunResult r = world.rank() == 0 ? run_tasks(text, tasks, small.options()) : run_tasks(text, {}, {});
    asked[static_cast<size_t>(world.rank())] = model.asked();
    EXPECT_EQ(r.tasks.size(), world.rank() == 0 ? 4u : 0u);
    if (world.rank() == 0) expect_same(r, one);
  });
  EXPECT_EQ(asked, std::vector<size_t>(3, alone.asked()));
}

TEST(TaskRun, AFailureOfRank0AloneLetsTheOthersGo) {
  SmallTasks small;
  const auto tasks = small.find({"pick"});
  EXPECT_THROW(run_thread_ranks(
                   2,
                   [&](Comm& world) {
                     auto model = small.model();
                     TextModel text(model, small.tokenizer(), small.rules(), world);
                     if (world.rank() != 0) return (void)run_tasks(text, {}, {});
                     run_tasks(text, tasks, small.options(), {.finished = [](const TaskResult&) { throw FaultError("full"); }});
                   },
                   10),
               FaultError);
}

}  // namespace
}  // namespace hlat
