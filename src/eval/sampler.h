// The next token of a text from the model's logits. The distribution is cut as transformers does, in this order: repetition penalty,
// temperature, top-k, top-p, min-p; what is left is drawn from with a number that depends on the seed and on how many tokens of the request
// came before, and on nothing else: not on the batch, the mesh or the order of requests.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "task/example.h"

namespace hlat {

// What is wrong with the values, one text for each that is none.
std::vector<std::string> sampling_problems(const Sampling& sampling);
// UsageError names all of them, each on a line. `where` begins the lines: "request 3: ".
void check_sampling(const Sampling& sampling, const std::string& where = "");

class Sampler {
 public:
  // The tokens of the prompt count as having been there. Values as check_sampling wants them.
  Sampler(const Sampling& sampling, std::span<const int32_t> prompt);

  // The likeliest token is all that is wanted: no other logit matters.
  static bool likeliest_is_enough(const Sampling& s) { return s.temperature == 0 && s.repetition_penalty == 1; }

  // The token that follows, which then has been there. The lowest id among equally likely ones is the likeliest. NumericalError where the
  // logits have no distribution.
  int32_t next(std::span<const float> logits);

 private:
  void saw(int32_t id);
  std::vector<float> penalized(std::span<const float> logits) const;

  Sampling sampling_;
  std::vector<bool> seen_;  // by id; empty: no penalty
  uint64_t drawn_ = 0;
};

// NumericalError unless the largest logit is a number, as it has to be where there is a distribution.
void check_largest(float logit);

// log p(id) of the model's own distribution.
double log_probability(std::span<const float> logits, int32_t id);

// exp(logit - largest), of all: probabilities but for their sum.
std::vector<double> softmax_weights(std::span<const float> logits);
// The index at which the weights, added up, pass `unit` (in [0, 1)) of their sum.
size_t draw_index(std::span<const double> weights, double unit);

}  // namespace hlat
