// Answers become values: accuracies, normalisation, filters, what is ignored, perplexities, programs.
#include "task/judge.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "support/task_of.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

using test::examples_of;
using test::task_of;
using test::TempDir;

// Values by the name of their metric.
std::map<std::string, double> named(const Task& task, const Judgement& judgement) {
  std::map<std::string, double> out;
  for (size_t i = 0; i < judgement.values.size(); ++i) out[task.info().metrics[i].key()] = judgement.values[i].value;
  return out;
}

Judgement judged(const Task& task, const std::string& record, const std::vector<Answer>& answers, const ProgramRunner& run = {}) {
  const TempDir dir;
  dir.write("a.jsonl", record);
  return task.judge(examples_of(task, {.data = dir.path()}).at(0), answers, run);
}

std::vector<Answer> logs(const std::vector<double>& values) {
  std::vector<Answer> out;
  for (const double v : values) out.push_back({.logprob = v});
  return out;
}

Task choice(const std::string& rest) {
  return task_of("task: t\ngroup: g\nkind: choice\ndata: {file: a.jsonl}\nprompt: x\nchoices: '{{ c }}'\n" + rest);
}

TEST(TaskJudge, AccuracyByTheSumAndPerCharacterAndByte) {
  const Task task = choice("gold: '{{ 1 }}'\nmetrics: [acc, acc_norm, acc_bytes]\n");
  // Per character: -6/6 beats -5/4; per byte: -6/9 beats them both. The delimiter does not count.
  const auto v = named(task, judged(task, R"({"c": ["abcd", "éèêabc"]})", logs({-5, -6})));
  EXPECT_EQ(v.at("acc,none"), 0);
  EXPECT_EQ(v.at("acc_norm,none"), 1);
  EXPECT_EQ(v.at("acc_bytes,none"), 1);
  const auto characters = named(task, judged(task, R"({"c": ["abcd", "éé"]})", logs({-4, -3})));
  EXPECT_EQ(characters.at("acc_norm,none"), 0) << "-3 over 2 characters is less than -4 over 4";
  EXPECT_EQ(characters.at("acc_bytes,none"), 1) << "-3 over 4 bytes is more";
}

TEST(TaskJudge, TheFirstWinsATie) {
  EXPECT_EQ(judged(choice("gold: '{{ 0 }}'\nmetrics: [acc]\n"), R"({"c": ["a", "b"]})", logs({-1, -1})).values[0].value, 1);
  EXPECT_EQ(judged(choice("gold: '{{ 1 }}'\nmetrics: [acc]\n"), R"({"c": ["a", "b"]})", logs({-1, -1})).values[0].value, 0);
}

TEST(TaskJudge, ShareOfProbabilityOnTrueChoices) {
  const Task task = choice("truths: '{{ t }}'\nmetrics: [{compute: mc2, name: acc}]\n");
  EXPECT_EQ(task.info().metrics[0].key(), "acc,none");
  const std::string record = R"({"c": ["a", "b", "c"], "t": [1, 0, 1]})";
  EXPECT_NEAR(judged(task, record, logs({std::log(0.2), std::log(0.5), std::log(0.1)})).values[0].value, 0.3 / 0.8, 1e-12);
  EXPECT_NEAR(judged(task, record, logs({-2000, -2000, -2000})).values[0].value, 2.0 / 3, 1e-12)
      << "probabilities below the smallest number";
}

TEST(TaskJudge, StereotypesArePreferredOrNot) {
  const Task task = choice("gold: '{{ 0 }}'\nmetrics: [pct_stereotype, likelihood_diff]\n");
  const auto v = named(task, judged(task, R"({"c": ["a", "b"]})", logs({-3, -5})));
  EXPECT_EQ(v.at("pct_stereotype,none"), 1);
  EXPECT_EQ(v.at("likelihood_diff,none"), 2);
  EXPECT_EQ(judged(task, R"({"c": ["a", "b"]})", logs({-3, -3})).values[0].value, 0) << "equal is not more";
}

TEST(TaskJudge, TargetsByGreedyDecodingAndTheirPerplexity) {
  const Task task =
      task_of("task: t\ngroup: g\nkind: likelihood\ndata: {file: a.jsonl}\nprompt: 'x'\ntarget: '{{ w }}'\nmetrics: [acc, perplexity]\n");
  const auto v = named(task, judged(task, R"({"w": "word"})", {{.logprob = -2.5, .greedy = true}}));
  EXPECT_EQ(v.at("acc,none"), 1);
  EXPECT_EQ(v.at("perplexity,none"), -2.5);
  EXPECT_EQ(task.info().metrics[1].aggregation, Aggregation::perplexity);
}

TEST(TaskJudge, WordsAndBytesAreCountedOnTheOtherText) {
  const Task task = task_of(
      "task: t\ngroup: g\nkind: perplexity\ndata: {file: a.jsonl}\ntext: '{{ text | rewrite }}'\ncounted: '{{ text }}'\nrewrite: [[' , ', "
      "', ']]\n"
      "metrics: [word_perplexity, byte_perplexity, bits_per_byte, token_perplexity]\n");
  const TempDir dir;
  dir.write("a.jsonl", R"({"text": " so , é \n"})");
  const Example example = examples_of(task, {.data = dir.path()}).at(0);
  EXPECT_EQ(example.requests[0].kind, AskKind::rolling);
  EXPECT_EQ(example.requests[0].continuation, " so, é \n");
  const Judgement j = task.judge(example, std::vector<Answer>{{.logprob = -7, .tokens = 4}});
  EXPECT_EQ(j.values[0].weight, 5) << "as Python's re.split counts: an empty piece at each end";
  EXPECT_EQ(j.values[1].weight, 10);
  EXPECT_EQ(j.values[2].weight, 10);
  EXPECT_EQ(j.values[3].weight, 4);
  EXPECT_EQ(j.values[0].value, -7);
}

Task generate(const std::string& rest) {
  return task_of("task: t\ngroup: g\nkind: generate\ndata: {file: a.jsonl}\nprompt: x\ntarget: '{{ a }}'\nmetrics: [exact_match]\n" + rest);
}

double match(const Task& task, const std::string& answer, const std::string& said) {
  return judged(task, Json{{"a", Json::parse(answer)}}.dump(), {{.text = said}}).values[0].value;
}

TEST(TaskJudge, ExactMatchWithAnyReference) {
  const Task strict = generate("");
  EXPECT_EQ(match(strict, "\"True\"", "True"), 1);
  EXPECT_EQ(match(strict, "\"True\"", " True"), 0);
  EXPECT_EQ(match(strict, R"(["a", "b"])", "b"), 1);
  EXPECT_EQ(match(generate("filters: [{name: none, strip: true}]\n"), "\"True\"", " True\n"), 1);
}

TEST(TaskJudge, CasePunctuationAndPatternsAreIgnoredOnBothSides) {
  const Task task = generate("ignore: ['\\b(?:The |the |An |A |The |a |an )']\nignore_case: true\nignore_punctuation: true\n");
  EXPECT_EQ(match(task, "\"The U.S.A.\"", "usa"), 1);
  EXPECT_EQ(match(task, "\"ÉCOLE\"", "the école!"), 1);
  EXPECT_EQ(match(task, "\"theatre\"", "atre"), 0);
  EXPECT_EQ(match(generate("ignore: ['the ']\nignore_case: true\n"), "\"The cat\"", "cat"), 0)
      << "patterns come before the case is lowered";
}

TEST(TaskJudge, Gsm8kStrictAndFlexible) {
  const Task task = generate(
      "filters:\n  - {name: strict-match, regex: '#### (\\-?[0-9\\.\\,]+)'}\n"
      "  - {name: flexible-extract, regex: '(-?[$0-9.,]{2,})|(-?[0-9]+)', take: -1}\n"
      "ignore: [',', '\\$', '(?s).*#### ', '\\.$']\nignore_case: true\n");
  const auto both = [&](const std::string& said) {
    const auto v = named(task, judged(task, R"({"a": "1+1 is\n2, so\n#### 1,200"})", {{.text = said}}));
    return std::pair(v.at("exact_match,strict-match"), v.at("exact_match,flexible-extract"));
  };
  EXPECT_EQ(both(" It is 3.\n#### 1200"), std::pair(1.0, 1.0));
  EXPECT_EQ(both("#### 1,200 and then\n#### 7"), std::pair(1.0, 0.0)) << "strict takes the first, flexible the last";
  EXPECT_EQ(both("The answer is $1,200."), std::pair(0.0, 1.0));
  EXPECT_EQ(both("none"), std::pair(0.0, 0.0));
}

TEST(TaskJudge, FiltersTakeWhatPythonsFindallGives) {
  const auto with = [](const std::string& pattern, int64_t take) {
    return AnswerFilter{.name = "f", .pattern = std::make_shared<const Pattern>(pattern), .take = take};
  };
  EXPECT_EQ(filtered(with("a.", 0), "xab ac"), "ab");
  EXPECT_EQ(filtered(with("a.", -1), "xab ac"), "ac");
  EXPECT_EQ(filtered(with("a.", 2), "xab ac"), "[invalid]");
  EXPECT_EQ(filtered(with("z", 0), "xab ac"), "[invalid]");
  EXPECT_EQ(filtered(with("(x)?(a)", 0), "ba"), "a") << "the first group that is not empty";
  EXPECT_EQ(filtered(with("is( .*)$", 0), "it is  so "), "so") << "white space goes";
  EXPECT_EQ(filtered(with("(?<=the answer is )(.*)(?=.)", 0), "So the answer is (A).\nthe answer is (B)."), "(A)");
}

TEST(TaskJudge, BytesThatAreNoCharactersDoNoHarm) {
  EXPECT_EQ(match(generate("ignore_case: true\nfilters: [{name: none, regex: '(.+)'}]\n"), "\"a\"", "\xff\xc3"), 0);
}

TEST(TaskJudge, ProgramsAreRunAndCounted) {
  const Task task = task_of(
      "task: t\ngroup: g\nkind: code\ndata: {file: a.jsonl}\nprompt: '{{ p }}'\nprogram: \"{{ p }}{{ output }}\\n{{ test }}\\ncheck({{ f "
      "}})\"\n"
      "generate: {samples: 4, temperature: 0.8}\nfilter_name: create_test\nmetrics: [pass@1, pass@2]\n");
  std::vector<std::string> programs;
  const auto run = [&](const std::string& program) {
    programs.push_back(program);
    return program.find("good") != std::string::npos;
  };
  const auto v = named(task, judged(task, R"({"p": "def f():\n", "test": "T", "f": "f"})",
                                    {{.text = " good"}, {.text = " bad"}, {.text = " bad"}, {.text = " bad"}}, run));
  ASSERT_EQ(programs.size(), 4u);
  EXPECT_EQ(programs[0], "def f():\n good\nT\ncheck(f)");
  EXPECT_NEAR(v.at("pass@1,create_test"), 0.25, 1e-12);
  EXPECT_NEAR(v.at("pass@2,create_test"), 0.5, 1e-12);
}

}  // namespace
}  // namespace hlat
