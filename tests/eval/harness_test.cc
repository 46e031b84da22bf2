// Answers and judgements are those of lm-evaluation-harness with `transformers` on the same weights and examples, for every task: each
// log-likelihood within 1e-4, greedy flags, token counts, generated texts, metrics of each example and of all (tools/harness_fixtures.py).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>

#include "support/harness_fixture.h"
#include "support/harness_model.h"

namespace hlat {
namespace {

using nlohmann::json;

constexpr double kRelative = 1e-4;

void expect_close(double have, double want, const std::string& where) { EXPECT_NEAR(have, want, kRelative * std::abs(want)) << where; }

// One example with what the harness said of it.
struct AskedExample {
  const Task* task = nullptr;
  std::string where;
  Example example;
  json want;
  std::vector<EncodedRequest> encoded;
  std::vector<Answer> answers;
};

std::vector<AskedExample> examples_of(TaskLibrary& library, const json& tasks, int64_t new_tokens) {
  std::vector<AskedExample> all;
  for (const auto& [name, want] : tasks.items()) {
    const test::HarnessTask own = test::find_harness_task(library, name);
    std::vector<Example> examples = test::harness_examples(own, static_cast<int64_t>(want["docs"].size()));
    for (size_t i = 0; i < examples.size(); ++i) {
      for (TextRequest& r : examples[i].requests) r.max_tokens = std::min(r.max_tokens, new_tokens);
      all.push_back({.task = own.task,
                     .where = fmt::format("{} document {}", name, i),
                     .example = std::move(examples[i]),
                     .want = want["docs"][i],
                     .encoded = {},
                     .answers = {}});
    }
  }
  return all;
}

// All requests of all tasks at once: whatever shares a pass must not matter.
void ask_all(TextModel& model, std::vector<AskedExample>& all) {
  std::vector<const EncodedRequest*> requests;
  for (AskedExample& a : all) {
    for (const TextRequest& r : a.example.requests) a.encoded.push_back(model.encode(r));
    for (const EncodedRequest& e : a.encoded) requests.push_back(&e);
  }
  const std::vector<Answer> answers = model.ask(requests);
  auto next = answers.begin();
  for (AskedExample& a : all) {
    const auto end = next + static_cast<int64_t>(a.encoded.size());
    a.answers.assign(next, end);
    next = end;
  }
}

// want: log-likelihood, greedy, tokens of the context before it was cut and of the continuation.
void expect_score(const AskedExample& a, size_t request, int64_t max_length, const json& want) {
  const std::string where = fmt::format("{} request {}", a.where, request);
  const ScoreRequest& ids = a.encoded[request].scores.at(0);
  const int64_t context = want[2], continuation = want[3];
  EXPECT_EQ(static_cast<int64_t>(ids.context.size()), std::min(context, max_length + 1 - continuation)) << where;
  EXPECT_EQ(static_cast<int64_t>(ids.continuation.size()), continuation) << where;
  EXPECT_EQ(a.answers[request].truncated, context + continuation > max_length + 1) << where;
  expect_close(a.answers[request].logprob, want[0], where);
  EXPECT_EQ(a.answers[request].greedy, want[1] == 1) << where;
}

void expect_answers(const AskedExample& a, int64_t max_length) {
  if (a.want.contains("scores")) {
    ASSERT_EQ(a.answers.size(), a.want["scores"].size()) << a.where;
    for (size_t i = 0; i < a.answers.size(); ++i) expect_score(a, i, max_length, a.want["scores"][i]);
  } else if (a.want.contains("rolling")) {
    expect_close(a.answers[0].logprob, a.want["rolling"][0], a.where);
    EXPECT_EQ(a.answers[0].tokens, a.want["rolling"][1].get<int64_t>()) << a.where;
  } else {
    EXPECT_EQ(a.answers[0].text, a.want["text"].get<std::string>()) << a.where;
  }
}

// A perplexity's value of one example is a pair, with the words or bytes that it counts for. A difference of log-likelihoods is as exact as
// they are.
void expect_metric(const AskedExample& a, const MetricValue& have, const json& want, const std::string& where) {
  const double number = want.is_array() ? want[0] : want;
  const bool difference = where.find("likelihood_diff") != std::string::npos;
  EXPECT_NEAR(have.value, number, kRelative * std::abs(difference ? a.answers[0].logprob : number)) << where;
  EXPECT_EQ(have.weight, want.is_array() ? want[1].get<double>() : 1.0) << where;
}

// By the name of the subtask and the metric: the values of all its examples.
using Values = std::map<std::pair<std::string, size_t>, std::vector<MetricValue>>;

void expect_judgement(const AskedExample& a, const std::string& subtask, Values& values) {
  const std::vector<Metric>& metrics = a.task->info().metrics;
  const Judgement judgement = a.task->judge(a.example, a.answers);
  size_t found = 0;
  for (size_t m = 0; m < metrics.size(); ++m) {
    values[{subtask, m}].push_back(judgement.values[m]);
    const auto want = a.want["metrics"].find(metrics[m].key());
    if (want == a.want["metrics"].end()) continue;  // one that the harness does not have
    ++found;
    expect_metric(a, judgement.values[m], *want, a.where + " " + metrics[m].key());
  }
  EXPECT_EQ(found, a.want["metrics"].size()) << a.where << ": metrics that only the harness has";
}

void expect_all(test::HarnessModel& model, const json& tasks, std::optional<bool> bos) {
  TaskLibrary library;
  TextModel texts = model.texts(bos);
  std::vector<AskedExample> all = examples_of(library, tasks, model.fixture()["new_tokens"]);
  ask_all(texts, all);
  Values values;
  std::map<std::string, const Task*> by_name;
  for (const AskedExample& a : all) {
    expect_answers(a, texts.max_length());
    const std::string subtask = a.where.substr(0, a.where.find(' '));
    by_name[subtask] = a.task;
    if (a.task->info().kind != TaskKind::code) expect_judgement(a, subtask, values);
  }
  for (const auto& [key, of_metric] : values) {
    const Metric& metric = by_name[key.first]->info().metrics[key.second];
    const json& results = tasks[key.first]["results"];
    if (results.contains(metric.key()))
      expect_close(aggregate(metric.aggregation, of_metric).value, results[metric.key()], key.first + " " + metric.key());
  }
}

class HarnessHeavy : public ::testing::TestWithParam<std::string> {};

TEST_P(HarnessHeavy, EveryTaskHasItsAnswersAndScores) {
  if (!std::filesystem::exists(test::shared_data())) GTEST_SKIP() << test::kNoSharedData;
  test::HarnessModel model(GetParam());
  expect_all(model, model.fixture()["tasks"], {});
  if (model.fixture().contains("without_bos")) expect_all(model, model.fixture()["without_bos"], false);
}

// Continuations that the model itself would write, and others.
TEST_P(HarnessHeavy, GreedyContinuationsAreKnownAsSuch) {
  if (!std::filesystem::exists(test::shared_data())) GTEST_SKIP() << test::kNoSharedData;
  test::HarnessModel model(GetParam());
  std::vector<ScoreRequest> requests;
  for (const json& want : model.fixture()["greedy"]) requests.push_back({.context = want["context"], .continuation = want["continuation"]});
  const std::vector<Score> scores = model.opened().model().score(requests);
  for (size_t i = 0; i < scores.size(); ++i) {
    const json& want = model.fixture()["greedy"][i];
    expect_close(scores[i].logprob, want["logprob"], fmt::format("request {}", i));
    EXPECT_EQ(scores[i].greedy, want["greedy"].get<bool>()) << "request " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, HarnessHeavy, ::testing::Values("llama2", "gpt2", "stories260K"), [](const auto& p) { return p.param; });

}  // namespace
}  // namespace hlat
