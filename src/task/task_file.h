// The content of a task file, checked and compiled: templates, patterns, sources and rules. docs/tasks.md is the reference of its keys.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "task/data_source.h"
#include "task/task.h"
#include "task/template.h"

namespace YAML {
class Node;
}

namespace hlat {

struct FewShot {
  DataSource source;           // not given: the data itself
  bool first = false;          // the first ones in their order; else drawn anew for each question
  bool has_questions = false;  // a source of its own that may hold the questions too
  std::string delimiter = "\n\n";
  Template prompt;  // not given: as for questions
  Template target;  // not given: the right answer, as for questions
};

// What is taken of a generated text before it is compared.
struct AnswerFilter {
  std::string name = "none";
  std::shared_ptr<const Pattern> pattern = {};  // null: the whole text
  int64_t take = 0;                             // number of the match; negative: from the last
  bool strip = false;
};

struct GenerationRules {
  std::vector<std::string> stop;
  int64_t max_tokens = 256;
  int64_t samples = 1;
  Sampling sampling;
};

// What a metric is computed by.
enum class Rule : uint8_t {
  acc,              // choice: the likeliest is the right one; likelihood: the target is what greedy decoding gives
  acc_norm,         // likeliest per character of the choice
  acc_bytes,        // likeliest per byte
  mc2,              // share of the probability that the true choices have
  pct_stereotype,   // the first choice is likelier than the second
  likelihood_diff,  // of two choices, absolute
  perplexity,       // exp(-mean log-likelihood of the targets)
  word_perplexity,
  byte_perplexity,
  token_perplexity,
  bits_per_byte,
  exact_match,
  pass_at,  // pass@k
};

struct MetricRule {
  Rule rule = Rule::acc;
  size_t filter = 0;  // exact_match: of TaskFile::filters
  int64_t k = 1;      // pass_at
};

struct TaskFile {
  TaskInfo info;
  std::vector<MetricRule> rules;  // one for each of info.metrics

  DataSource data;
  std::vector<std::string> subtasks;  // the only ones that count; empty: all that have a file
  DataSource shared;                  // fields that all records of a subtask share: a file and a pattern
  FewShot fewshot;

  Template description;  // before everything else; sees shared fields and `subtask`
  Template prompt;
  std::string target_delimiter = " ";

  TemplateList choices;   // choice
  TemplateList contexts;  // choice: a context for each choice, with one continuation for all
  Template continuation;
  Template gold;               // choice: number of the right one, from 0
  Template truths;             // choice: a list with 1 for true choices and 0 for others
  TemplateList target;         // likelihood: the continuation; generate: what is right, the first for few-shot
  Template text;               // perplexity
  Template counted;            // perplexity: the text whose words and bytes count; not given: `text`
  GenerationRules generation;  // generate, code
  std::vector<AnswerFilter> filters;
  Rewrite ignore;  // exact_match: what is left out on both sides
  bool ignore_case = false;
  bool ignore_punctuation = false;
  Template program;  // code: sees the field `output`
};

// UsageError with all problems of the file, each with its line.
std::unique_ptr<const TaskFile> read_task_file(const YAML::Node& root, const std::string& file);

}  // namespace hlat
