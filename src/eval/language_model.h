// A model that answers requests, whatever its mesh: what tasks, generation and tests see of it. Calls are collective over all ranks, with
// the same requests on each, and every rank gets all answers: replicas share the work.
#pragma once

#include <functional>
#include <span>

#include "eval/request.h"

namespace hlat {

class LanguageModel {
 public:
  virtual ~LanguageModel() = default;

  // Tokens it can read at once, the prompt and what it generates together.
  virtual int64_t max_length() const = 0;
  virtual int64_t vocab() const = 0;

  // `done` is called once for each request, in the order in which they are finished, on every rank alike.
  using ScoreDone = std::function<void(size_t request, const Score& score)>;
  virtual void score(std::span<const ScoreRequest> requests, const ScoreDone& done) = 0;

  // `next` is called for each new token of each request, on every rank alike; false ends that request (a stop string was found). A request
  // that ends by itself, with its end token or after max_new tokens, gets a last call with id -1.
  struct NewToken {
    int32_t id = -1;
    float logprob = 0;  // where it was asked for, of the distribution before temperature and cuts
  };
  using TokenSink = std::function<bool(size_t request, const NewToken& token)>;
  virtual void generate(std::span<const GenerateRequest> requests, const TokenSink& next) = 0;
};

}  // namespace hlat
