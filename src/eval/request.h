// The two things that are asked of a model, in token ids, and what comes back. All lengths fit the model: whoever made them of texts has
// cut them (eval/encode.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "task/example.h"

namespace hlat {

// The log-likelihood of `continuation` after `context`. Neither is empty, and all but the last token are read: together they have at most
// max_length() + 1 tokens.
struct ScoreRequest {
  std::vector<int32_t> context;
  std::vector<int32_t> continuation;
};

struct Score {
  double logprob = 0;           // sum of natural logarithms
  bool greedy = true;           // every token is the likeliest one
  std::vector<float> logprobs;  // of each token of the continuation
};

// Tokens after `prompt`, which is not empty and has, with max_new, at most max_length() tokens.
struct GenerateRequest {
  std::vector<int32_t> prompt;
  int64_t max_new = 256;
  Sampling sampling = {};
  int32_t end = -1;       // the token that ends a text, which is not handed out; -1: none
  bool logprobs = false;  // wanted for each token
};

struct NewToken {
  int32_t id = -1;
  float logprob = 0;  // where it was asked for: of the model's own distribution, before temperature, penalty and cuts
};

enum class EndReason : uint8_t { end_token, length, stopped };

struct Generation {
  std::vector<NewToken> tokens;  // the end token is not among them
  EndReason reason = EndReason::length;
};

}  // namespace hlat
