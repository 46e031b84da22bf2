#include "eval/sampler.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/rng.h"

namespace hlat {

namespace {

struct Candidate {
  int32_t id = 0;
  double weight = 0;  // 1 for the likeliest
};

float largest(std::span<const float> logits) {
  float top = -INFINITY;
  for (const float l : logits) top = std::isnan(l) || l > top ? l : top;  // a NaN stays: nothing is larger
  check_largest(top);
  return top;
}

// Tokens of the k largest scores, and those as large as the last of them.
std::vector<Candidate> candidates_of(const std::vector<float>& scores, const Sampling& s) {
  const float top = largest(scores);
  float least = -INFINITY;
  if (s.top_k > 0 && s.top_k < static_cast<int64_t>(scores.size())) {
    std::vector<float> order = scores;
    std::nth_element(order.begin(), order.begin() + s.top_k - 1, order.end(), std::greater<>());
    least = order[static_cast<size_t>(s.top_k - 1)];
  }
  std::vector<Candidate> kept;
  for (size_t id = 0; id < scores.size(); ++id)
    if (scores[id] >= least)
      kept.push_back({.id = static_cast<int32_t>(id), .weight = std::exp(static_cast<double>(scores[id] - top) / s.temperature)});
  return kept;
}

// The likeliest candidates that together have `top_p` of the mass, at least one; in the order of their ids again. Most of the mass is in
// few tokens, so only as many as are needed come into order.
void keep_top_p(std::vector<Candidate>& all, double top_p) {
  const double enough = top_p * std::accumulate(all.begin(), all.end(), 0.0, [](double sum, const Candidate& c) { return sum + c.weight; });
  constexpr size_t kFirst = 64, kMore = 8;
  const auto likelier = [](const Candidate& a, const Candidate& b) { return a.weight != b.weight ? a.weight > b.weight : a.id < b.id; };
  double mass = 0;
  size_t kept = 0;
  for (size_t ordered = 0; kept < all.size() && (kept == 0 || mass < enough);) {
    if (kept == ordered) {
      const size_t more = std::min(all.size(), ordered == 0 ? kFirst : kMore * ordered);
      std::partial_sort(all.begin() + static_cast<ptrdiff_t>(ordered), all.begin() + static_cast<ptrdiff_t>(more), all.end(), likelier);
      ordered = more;
    }
    mass += all[kept++].weight;
  }
  all.resize(kept);
  std::sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
}

// Number `index` of a seed's stream, in [0, 1).
double unit_of(uint64_t seed, uint64_t index) {
  const NoiseKey key{.seed = seed, .stream = hash_name("generate"), .purpose = Noise::sample};
  const auto words = philox_block(key, index);
  return static_cast<double>((uint64_t{words[0]} << 32 | words[1]) >> 11) * 0x1p-53;
}

}  // namespace

void check_largest(float logit) {
  if (!std::isfinite(logit)) fail<NumericalError>("the model's logits are not finite: its weights are damaged, or overflow");
}

std::vector<std::string> sampling_problems(const Sampling& s) {
  std::vector<std::string> problems;
  const auto check = [&](bool good, const char* name, double value, const char* range) {
    if (!good) problems.push_back(fmt::format("{} = {}: must be {}", name, value, range));
  };
  check(s.temperature >= 0 && std::isfinite(s.temperature), "temperature", s.temperature, "a number from 0 (greedy) on");
  check(s.top_k >= 0, "top_k", static_cast<double>(s.top_k), "a count from 0 (all tokens) on");
  check(s.top_p >= 0 && s.top_p <= 1, "top_p", s.top_p, "from 0 to 1 (all tokens)");
  check(s.min_p >= 0 && s.min_p <= 1, "min_p", s.min_p, "from 0 (all tokens) to 1");
  check(s.repetition_penalty > 0 && std::isfinite(s.repetition_penalty), "repetition_penalty", s.repetition_penalty,
        "a number above 0; 1 is none");
  return problems;
}

void check_sampling(const Sampling& s, const std::string& where) {
  const std::vector<std::string> problems = sampling_problems(s);
  if (!problems.empty()) fail<UsageError>("{}{}", where, fmt::join(problems, "\n" + where));
}

std::vector<double> softmax_weights(std::span<const float> logits) {
  const float top = largest(logits);
  std::vector<double> weights(logits.size());
  std::transform(logits.begin(), logits.end(), weights.begin(), [top](float l) { return std::exp(static_cast<double>(l - top)); });
  return weights;
}

size_t draw_index(std::span<const double> weights, double unit) {
  double left = unit * std::accumulate(weights.begin(), weights.end(), 0.0);
  size_t last = 0;  // of those with any weight: rounding may leave a little at the end
  for (size_t i = 0; i < weights.size(); ++i) {
    left -= weights[i];
    if (left < 0) return i;
    if (weights[i] > 0) last = i;
  }
  return last;
}

double log_probability(std::span<const float> logits, int32_t id) {
  const float top = largest(logits);
  double sum = 0;
  for (const float l : logits) sum += std::exp(static_cast<double>(l - top));
  return static_cast<double>(logits[static_cast<size_t>(id)]) - static_cast<double>(top) - std::log(sum);
}

Sampler::Sampler(const Sampling& sampling, std::span<const int32_t> prompt) : sampling_(sampling) {
  for (const int32_t id : prompt) saw(id);
}

void Sampler::saw(int32_t id) {
  if (sampling_.repetition_penalty == 1) return;
  const auto at = static_cast<size_t>(id);
  if (at >= seen_.size()) seen_.resize(at + 1);
  seen_[at] = true;
}

std::vector<float> Sampler::penalized(std::span<const float> logits) const {
  std::vector<float> scores(logits.begin(), logits.end());
  const auto penalty = static_cast<float>(sampling_.repetition_penalty);
  for (size_t id = 0; id < std::min(seen_.size(), scores.size()); ++id)
    if (seen_[id]) scores[id] = scores[id] < 0 ? scores[id] * penalty : scores[id] / penalty;
  return scores;
}

int32_t Sampler::next(std::span<const float> logits) {
  largest(logits);  // before a penalty hides what it is
  const std::vector<float> scores = penalized(logits);
  int32_t id = 0;
  if (sampling_.temperature == 0) {
    id = static_cast<int32_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
  } else {
    std::vector<Candidate> kept = candidates_of(scores, sampling_);
    if (sampling_.top_p < 1) keep_top_p(kept, sampling_.top_p);
    if (sampling_.min_p > 0) std::erase_if(kept, [&](const Candidate& c) { return c.weight < sampling_.min_p; });
    std::vector<double> weights(kept.size());
    std::transform(kept.begin(), kept.end(), weights.begin(), [](const Candidate& c) { return c.weight; });
    id = kept[draw_index(weights, unit_of(sampling_.seed, drawn_))].id;
  }
  ++drawn_;
  saw(id);
  return id;
}

}  // namespace hlat
