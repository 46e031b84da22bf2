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

  // Called from time to time: requests that are answered, of all that were asked in this call.
  using Told = std::function<void(size_t answered)>;

  virtual std::vector<Score> score(std::span<const ScoreRequest> requests, const Told& told = {}) = 0;

  // `keep` is called for each new token of a request before the next one is computed, in order; false ends the request there (a stop
  // string is complete), and the token is its last. It is called on the ranks of the replica that has the request, alike on all of them:
  // it must decide alike. Not called for the end token.
  using KeepOn = std::function<bool(size_t request, const NewToken& token)>;
  virtual std::vector<Generation> generate(std::span<const GenerateRequest> requests, const KeepOn& keep = {}, const Told& told = {}) = 0;
};

}  // namespace hlat
