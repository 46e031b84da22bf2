// What a task asks of a model and what it gets back, in texts. A task turns each record of its data into an Example: one or more requests.
// The answers come from whoever has a model and a tokenizer (eval/); the task then judges the example by them (task/task.h).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace hlat {

enum class AskKind : uint8_t {
  score,     // the log-likelihood of `continuation` after `context`
  rolling,   // the log-likelihood of all of `continuation`, in windows of the model's length; no context
  generate,  // a text that goes on after `context`
};

// How the next token is taken from the model's distribution.
struct Sampling {
  double temperature = 0;  // 0: the likeliest token
  int64_t top_k = 0;       // 0: all
  double top_p = 1;
  double min_p = 0;               // share of the likeliest token's probability below which tokens are left out
  double repetition_penalty = 1;  // divides positive logits of tokens that were there already, multiplies negative ones
  uint64_t seed = 0;              // the same seed draws the same tokens, whatever runs in the same batch
  bool operator==(const Sampling&) const = default;
};

struct TextRequest {
  AskKind kind = AskKind::score;
  std::string context = {};  // score: empty means the prefix token alone
  std::string continuation = {};
  std::vector<std::string> stop = {};  // generate: the text ends before the first of these
  int64_t max_tokens = 256;            // generate
  Sampling sampling = {};              // generate
};

struct Answer {
  double logprob = 0;      // score, rolling: natural logarithm, summed over the tokens
  bool greedy = false;     // score: every token of the continuation is the likeliest one
  int64_t tokens = 0;      // score, rolling: tokens whose logarithms are summed; generate: new tokens
  bool truncated = false;  // the context was cut on the left to fit the model
  std::string text = {};   // generate: without the stop string
};

struct Example {
  int64_t id = 0;                      // the number of its record in the data, from 0
  nlohmann::ordered_json record = {};  // its fields, as the data has them
  std::vector<TextRequest> requests = {};
  int64_t lacking_shots = 0;  // few-shot examples that it got too few: those drawn were the question itself
};

}  // namespace hlat
