#include "task/judge.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "data/tokenizer/unicode.h"
#include "task/questions.h"
#include "task/text.h"

namespace hlat {
namespace {

constexpr const char* kInvalid = "[invalid]";

// What Python's findall gives for a match: the match, its only group, or of several groups the first that is not empty.
std::string taken(size_t groups, const Pattern::Search& search, const std::string& text, const Pattern::Range& match) {
  if (groups == 0) return text.substr(match.begin, match.end - match.begin);
  for (size_t number = 1; number <= groups; ++number) {
    const auto group = search.group(number);
    if (group && group->end > group->begin) return text.substr(group->begin, group->end - group->begin);
  }
  return groups == 1 ? "" : kInvalid;
}

// Number of the largest; the first of several.
size_t largest(const std::vector<double>& values) {
  return static_cast<size_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

// Share of the probability of all choices that the true ones have. The largest is taken out of the exponents, which may all be tiny.
double mass_of_truth(const std::vector<double>& logs, const std::vector<bool>& truths) {
  const double top = *std::max_element(logs.begin(), logs.end());
  double all = 0, right = 0;
  for (size_t i = 0; i < logs.size(); ++i) {
    const double p = std::exp(logs[i] - top);
    all += p;
    right += truths[i] ? p : 0;
  }
  return right / all;
}

double choice_value(Rule rule, const std::vector<double>& logs, const std::vector<std::string>& choices, size_t gold,
                    const std::vector<bool>& truths) {
  std::vector<double> scaled = logs;
  for (size_t i = 0; i < scaled.size(); ++i) {
    if (rule == Rule::acc_norm) scaled[i] /= static_cast<double>(characters(choices[i]));
    if (rule == Rule::acc_bytes) scaled[i] /= static_cast<double>(choices[i].size());
  }
  switch (rule) {
    case Rule::mc2: return mass_of_truth(logs, truths);
    case Rule::pct_stereotype: return logs[0] > logs[1] ? 1 : 0;
    case Rule::likelihood_diff: return std::abs(logs[0] - logs[1]);
    default: return largest(scaled) == gold ? 1 : 0;
  }
}

Judgement judge_choice(const TaskFile& task, const Example& example, std::span<const Answer> answers) {
  std::vector<double> logs;
  std::vector<std::string> choices;  // without the delimiter
  for (size_t i = 0; i < answers.size(); ++i) {
    logs.push_back(answers[i].logprob);
    choices.push_back(example.requests[i].continuation.substr(task.target_delimiter.size()));
  }
  std::vector<bool> truths;
  if (task.truths.given()) truths = truths_of(task, example.record, choices.size());
  const size_t gold = gold_of(task, example.record, choices.size());
  Judgement out;
  out.target = std::to_string(gold);
  out.filtered = {std::to_string(largest(logs))};
  for (const MetricRule& m : task.rules) out.values.push_back({.value = choice_value(m.rule, logs, choices, gold, truths)});
  return out;
}

Judgement judge_likelihood(const TaskFile& task, const Example& example, const Answer& answer) {
  Judgement out;
  out.target = example.requests[0].continuation.substr(task.target_delimiter.size());
  out.filtered = {answer.greedy ? "greedy" : "not greedy"};
  for (const MetricRule& m : task.rules)
    out.values.push_back({.value = m.rule == Rule::perplexity ? answer.logprob : answer.greedy ? 1.0 : 0.0});
  return out;
}

Judgement judge_perplexity(const TaskFile& task, const Example& example, const Answer& answer) {
  const std::string counted = (task.counted.given() ? task.counted : task.text).text({example.record});
  Judgement out;
  const int64_t words = pieces_between_spaces(counted);
  out.target = fmt::format("{} words, {} bytes", words, counted.size());
  for (const MetricRule& m : task.rules) {
    const int64_t weight = m.rule == Rule::word_perplexity    ? words
                           : m.rule == Rule::token_perplexity ? answer.tokens
                                                              : static_cast<int64_t>(counted.size());
    out.values.push_back({.value = answer.logprob, .weight = static_cast<double>(weight)});
  }
  return out;
}

Judgement judge_generated(const TaskFile& task, const Example& example, std::span<const Answer> answers) {
  const std::vector<std::string> right = references_of(task, example.record);
  Judgement out;
  out.target = right[0];
  std::vector<double> matches;  // by filter; of several samples the mean
  for (const AnswerFilter& filter : task.filters) {
    double sum = 0;
    for (const Answer& answer : answers) {
      std::string repaired;
      out.filtered.push_back(filtered(filter, std::string(tokenizer::unicode::valid(answer.text, repaired))));
      const auto same = [&](const std::string& r) { return same_answer(task, out.filtered.back(), r); };
      sum += std::any_of(right.begin(), right.end(), same) ? 1 : 0;
    }
    matches.push_back(sum / static_cast<double>(answers.size()));
  }
  for (const MetricRule& m : task.rules) out.values.push_back({.value = matches[m.filter]});
  return out;
}

Judgement judge_code(const TaskFile& task, const Example& example, std::span<const Answer> answers, const ProgramRunner& run) {
  HLAT_CHECK(run, "task {} runs programs", task.info.name);
  Judgement out;
  out.target = "a program that ends well";
  int64_t passed = 0;
  for (const Answer& answer : answers) {
    const Json output = {{"output", answer.text}};
    const bool good = run(task.program.text({example.record, &output}));
    passed += good ? 1 : 0;
    out.filtered.emplace_back(good ? "passed" : "failed");
  }
  for (const MetricRule& m : task.rules) out.values.push_back({.value = pass_at_k(static_cast<int64_t>(answers.size()), passed, m.k)});
  return out;
}

}  // namespace

std::string filtered(const AnswerFilter& filter, const std::string& text) {
  if (!filter.pattern) return filter.strip ? std::string(strip(text)) : text;
  std::vector<std::string> matches;
  Pattern::Search search(*filter.pattern, Pattern::Search::Captures::kept);
  Pattern::Range match{};
  for (size_t from = 0; from <= text.size() && search.find(text, from, match); from = Pattern::after(text, match))
    matches.push_back(taken(filter.pattern->groups(), search, text, match));
  const int64_t at = filter.take < 0 ? filter.take + static_cast<int64_t>(matches.size()) : filter.take;
  if (at < 0 || at >= static_cast<int64_t>(matches.size())) return kInvalid;
  return std::string(strip(matches[static_cast<size_t>(at)]));
}

bool same_answer(const TaskFile& task, const std::string& given, const std::string& right) {
  const auto plain = [&](const std::string& text) {
    std::string out = task.ignore(text);
    if (task.ignore_case) out = lower(out);
    if (task.ignore_punctuation) out = without_punctuation(out);
    return out;
  };
  return plain(given) == plain(right);
}

Judgement judge_example(const TaskFile& task, const Example& example, std::span<const Answer> answers, const ProgramRunner& run) {
  HLAT_CHECK(answers.size() == example.requests.size(), "{} answers to {} requests", answers.size(), example.requests.size());
  switch (task.info.kind) {
    case TaskKind::choice: return judge_choice(task, example, answers);
    case TaskKind::likelihood: return judge_likelihood(task, example, answers[0]);
    case TaskKind::perplexity: return judge_perplexity(task, example, answers[0]);
    case TaskKind::generate: return judge_generated(task, example, answers);
    case TaskKind::code: return judge_code(task, example, answers, run);
  }
  HLAT_CHECK(false, "kind {}", static_cast<int>(task.info.kind));
}

}  // namespace hlat
