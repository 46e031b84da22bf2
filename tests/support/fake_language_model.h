// A model whose answers are a function of the ids that it is asked about, and of nothing else.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/rng.h"
#include "eval/language_model.h"

namespace hlat::test {

class FakeLanguageModel final : public LanguageModel {
 public:
  FakeLanguageModel(int64_t max_length, int64_t vocab) : max_length_(max_length), vocab_(vocab) {}

  int64_t max_length() const override { return max_length_; }
  int64_t vocab() const override { return vocab_; }
  size_t asked() const { return asked_; }                    // requests so far
  void break_after(size_t requests) { broken_ = requests; }  // log-likelihoods are then no numbers

  std::vector<Score> score(std::span<const ScoreRequest> requests, const Told& told) override {
    std::vector<Score> scores;
    for (const ScoreRequest& r : requests) {
      std::vector<int32_t> ids = r.context;
      Score s;
      for (const int32_t id : r.continuation) {
        ids.push_back(id);
        s.logprobs.push_back(-static_cast<float>(1 + hash(ids) % 5000) / 1000);
        s.logprob += s.logprobs.back();
        s.greedy = s.greedy && hash(ids) % 3 == 0;
      }
      if (asked_ >= broken_) s.logprob = std::numeric_limits<double>::quiet_NaN();
      scores.push_back(std::move(s));
      ++asked_;
      if (told) told(scores.size());
    }
    return scores;
  }

  std::vector<Generation> generate(std::span<const GenerateRequest> requests, const KeepOn& keep, const Told& told) override {
    std::vector<Generation> texts;
    for (size_t i = 0; i < requests.size(); ++i) {
      std::vector<int32_t> ids = requests[i].prompt;
      Generation g;
      while (static_cast<int64_t>(g.tokens.size()) < requests[i].max_new) {
        const auto id = static_cast<int32_t>((hash(ids) + requests[i].sampling.seed) % static_cast<uint64_t>(vocab_));
        if (id == requests[i].end) {
          g.reason = EndReason::end_token;
          break;
        }
        ids.push_back(id);
        g.tokens.push_back({.id = id});
        if (keep && !keep(i, g.tokens.back())) {
          g.reason = EndReason::stopped;
          break;
        }
      }
      texts.push_back(std::move(g));
      ++asked_;
      if (told) told(texts.size());
    }
    return texts;
  }

 private:
  static uint64_t hash(const std::vector<int32_t>& ids) {
    return hash_name({reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(int32_t)});
  }

  int64_t max_length_, vocab_;
  size_t asked_ = 0, broken_ = std::numeric_limits<size_t>::max();
};

}  // namespace hlat::test
