// The next token from logits: against a plain reference that sorts everything, and by counting draws.
#include "eval/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/rng.h"
#include "support/message_of.h"

namespace hlat {
namespace {

std::vector<float> random_logits(size_t vocab, uint64_t seed, double scale = 3) {
  const NoiseKey key{.seed = seed, .stream = hash_name("logits"), .purpose = Noise::data};
  std::vector<float> logits;
  for (uint64_t block = 0; logits.size() < vocab; ++block)
    for (const float x : normal_block(key, block)) logits.push_back(static_cast<float>(scale) * x);
  logits.resize(vocab);
  return logits;
}

// Probabilities by id as transformers' processors leave them, one after the other, each on all that is left. Equal logits count as sorted
// by their ids.
std::map<int32_t, double> reference(const std::vector<float>& logits, const Sampling& s, const std::set<int32_t>& seen = {}) {
  std::vector<std::pair<double, int32_t>> left;  // score, id
  for (size_t id = 0; id < logits.size(); ++id) {
    double score = logits[id];
    if (seen.contains(static_cast<int32_t>(id))) score = score < 0 ? score * s.repetition_penalty : score / s.repetition_penalty;
    left.emplace_back(score / s.temperature, static_cast<int32_t>(id));
  }
  std::sort(left.begin(), left.end(),
            [](const auto& a, const auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
  const auto probabilities = [&left] {
    std::vector<double> p;
    for (const auto& [score, id] : left) p.push_back(std::exp(score - left.front().first));
    const double sum = std::accumulate(p.begin(), p.end(), 0.0);
    for (double& x : p) x /= sum;
    return p;
  };
  if (s.top_k > 0)
    while (static_cast<int64_t>(left.size()) > s.top_k && left.back().first < left[static_cast<size_t>(s.top_k) - 1].first) left.pop_back();
  std::vector<double> p = probabilities();
  size_t kept = 0;
  for (double before = 0; kept < left.size() && (kept == 0 || before < s.top_p); ++kept) before += p[kept];
  if (s.top_p < 1) left.resize(kept);
  p = probabilities();
  while (left.size() > 1 && p[left.size() - 1] < s.min_p * p.front()) left.pop_back();
  p = probabilities();
  std::map<int32_t, double> out;
  for (size_t i = 0; i < left.size(); ++i) out[left[i].second] = p[i];
  return out;
}

// How often each token is drawn by requests of different seeds.
std::map<int32_t, int64_t> first_draws(const std::vector<float>& logits, Sampling s, int64_t times, std::span<const int32_t> prompt = {}) {
  std::map<int32_t, int64_t> counts;
  for (int64_t i = 0; i < times; ++i) {
    s.seed = static_cast<uint64_t>(i);
    ++counts[Sampler(s, prompt).next(logits)];
  }
  return counts;
}

TEST(Sampler, DrawsWhatEachCutOfTheReferenceLeavesAndNothingElse) {
  const std::vector<Sampling> settings = {
      {.temperature = 1},
      {.temperature = 0.5},
      {.temperature = 1, .top_k = 3},
      {.temperature = 1, .top_p = 0.7},
      {.temperature = 1, .min_p = 0.2},
      {.temperature = 0.8, .top_k = 10, .top_p = 0.8, .min_p = 0.05},
      {.temperature = 1.5, .top_p = 0.95, .repetition_penalty = 1.8},
      {.temperature = 0.7, .top_k = 5, .repetition_penalty = 0.6},
      {.temperature = 1, .top_p = 0},
  };
  const std::vector<int32_t> prompt = {1, 7, 7, 30};
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const std::vector<float> logits = random_logits(40, seed);
    for (size_t i = 0; i < settings.size(); ++i) {
      const std::map<int32_t, double> expected = reference(logits, settings[i], {prompt.begin(), prompt.end()});
      constexpr int64_t kTimes = 500;
      const std::map<int32_t, int64_t> drawn = first_draws(logits, settings[i], kTimes, prompt);
      for (const auto& [id, count] : drawn) EXPECT_TRUE(expected.contains(id)) << "setting " << i << " draws " << id;
      // Below 1e-6 that a token of such a share is missing.
      for (const auto& [id, p] : expected)
        EXPECT_TRUE(p < 0.03 || drawn.contains(id)) << "setting " << i << " never draws " << id << " of probability " << p;
    }
  }
}

TEST(Sampler, FrequenciesAreTheProbabilities) {
  const std::vector<float> logits = random_logits(12, 3, 1);
  const Sampling s{.temperature = 0.9, .top_k = 9, .top_p = 0.97, .min_p = 0.01};
  constexpr int64_t kTimes = 40000;
  const auto expected = reference(logits, s);
  const auto drawn = first_draws(logits, s, kTimes);
  ASSERT_GT(expected.size(), 5u);
  double chi = 0;
  for (const auto& [id, p] : expected) {
    const double mean = p * kTimes, off = static_cast<double>(drawn.contains(id) ? drawn.at(id) : 0) - mean;
    chi += off * off / mean;
  }
  // Seeds are fixed, so this either holds or not; 5 standard deviations above the mean of chi-square.
  const double freedom = static_cast<double>(expected.size()) - 1;
  EXPECT_LT(chi, freedom + 5 * std::sqrt(2 * freedom));
}

TEST(Sampler, TheTokensOfOneTextAreDrawnIndependently) {
  const std::vector<float> logits(8, 0.0F);
  Sampler sampler({.temperature = 1, .seed = 11}, {});
  std::map<std::pair<int32_t, int32_t>, int64_t> pairs;
  int32_t before = sampler.next(logits);
  constexpr int64_t kTimes = 64 * 400;
  for (int64_t i = 0; i < kTimes; ++i) {
    const int32_t id = sampler.next(logits);
    ++pairs[{before, id}];
    before = id;
  }
  EXPECT_EQ(pairs.size(), 64u);
  for (const auto& [pair, count] : pairs) EXPECT_NEAR(static_cast<double>(count), 400, 6 * 20) << pair.first << ", " << pair.second;
}

TEST(Sampler, TheSeedAndTheNumberOfTheTokenDecide) {
  const std::vector<float> logits = random_logits(1000, 1, 0.5);
  const auto tokens = [&](uint64_t seed) {
    Sampler sampler({.temperature = 1, .seed = seed}, {});
    std::vector<int32_t> ids;
    for (int i = 0; i < 20; ++i) ids.push_back(sampler.next(logits));
    return ids;
  };
  EXPECT_EQ(tokens(5), tokens(5));
  EXPECT_NE(tokens(5), tokens(6));
  EXPECT_NE(tokens(5), tokens(uint64_t{5} << 32)) << "all bits of a seed count";
  const std::vector<int32_t> ids = tokens(5);
  EXPECT_GT(std::set(ids.begin(), ids.end()).size(), 15u);
}

TEST(Sampler, TopKOfOneAndATemperatureNearZeroAreGreedy) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<float> logits = random_logits(300, seed);
    const auto best = static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    for (const Sampling& s : {Sampling{.seed = seed}, Sampling{.temperature = 1, .top_k = 1, .seed = seed},
                              Sampling{.temperature = 1e-5, .seed = seed}, Sampling{.temperature = 5e-324, .seed = seed},
                              Sampling{.temperature = 2, .min_p = 1, .seed = seed}, Sampling{.temperature = 2, .top_p = 0, .seed = seed}})
      EXPECT_EQ(Sampler(s, {}).next(logits), best);
  }
}

TEST(Sampler, AmongEqualLogitsTheLowestIdIsTheLikeliestAndTopKKeepsAll) {
  std::vector<float> logits = {1, 3, 0, 3, 3};
  EXPECT_EQ(Sampler({}, {}).next(logits), 1);
  const auto drawn = first_draws(logits, {.temperature = 1, .top_k = 2}, 200);
  EXPECT_EQ(drawn.size(), 3u) << "as transformers keeps all that are as likely as the second";
  EXPECT_FALSE(drawn.contains(0));
  EXPECT_EQ(first_draws(logits, {.temperature = 1, .top_p = 0.01}, 50).size(), 1u);
}

// A vocabulary much larger than what comes into order first.
TEST(Sampler, TopPOfAFlatDistributionKeepsItsShare) {
  const std::vector<float> logits(1200, 0.5F);
  const auto drawn = first_draws(logits, {.temperature = 1, .top_p = 0.5}, 5000);
  EXPECT_LE(drawn.rbegin()->first, 600) << "the lowest ids among equals";
  EXPECT_GT(drawn.size(), 590u);
}

TEST(Sampler, ThePenaltyCountsThePromptAndWhatCameAfterIt) {
  const std::vector<float> logits = {2.0F, 1.9F, 1.5F, -1.0F};
  Sampler sampler({.repetition_penalty = 1.3}, std::vector<int32_t>{0, 0, 0});
  EXPECT_EQ(sampler.next(logits), 1) << "2.0 / 1.3 = 1.54, once";
  EXPECT_EQ(sampler.next(logits), 0) << "1.9 / 1.3 = 1.46 is less than 1.54";
  const std::vector<float> negative = {-2.0F, -1.9F};
  EXPECT_EQ(Sampler({.repetition_penalty = 1.3}, std::vector<int32_t>{1}).next(negative), 0) << "negative ones are multiplied";
  EXPECT_FALSE(Sampler::likeliest_is_enough({.repetition_penalty = 1.3}));
  EXPECT_TRUE(Sampler::likeliest_is_enough({}));
}

TEST(Sampler, LogProbabilityIsOfTheModelsOwnDistribution) {
  const std::vector<float> logits = random_logits(200, 9, 20);
  double sum = 0;
  for (const float l : logits) sum += std::exp(static_cast<double>(l) - 50);
  for (const int32_t id : {0, 17, 199})
    EXPECT_NEAR(log_probability(logits, id), logits[static_cast<size_t>(id)] - 50 - std::log(sum), 1e-4) << id;
  EXPECT_EQ(log_probability(std::vector<float>{500.0F, -INFINITY}, 0), 0);
}

TEST(Sampler, LogitsThatAreNoNumbersAreRefused) {
  for (const std::vector<float>& logits : {std::vector<float>{1, NAN, 2}, {NAN, 1}, {1, INFINITY}, {-INFINITY, -INFINITY}, {}})
    for (const Sampling& s : {Sampling{}, Sampling{.temperature = 1}, Sampling{.temperature = 1, .top_k = 1}})
      EXPECT_THROW(Sampler(s, {}).next(logits), NumericalError);
  EXPECT_THROW(log_probability(std::vector<float>{NAN, 1}, 1), NumericalError);
  EXPECT_EQ(Sampler({.temperature = 1}, {}).next(std::vector<float>{-INFINITY, 0}), 1) << "a token that is ruled out is none";
}

TEST(Sampler, ValuesThatMeanNothingAreNamed) {
  EXPECT_NO_THROW(check_sampling({.temperature = 0.7, .top_k = 40, .top_p = 0.95, .min_p = 0.05, .repetition_penalty = 1.1}));
  EXPECT_EQ(message_of([] { check_sampling({.temperature = -1}, "line 3: "); }),
            "line 3: temperature = -1: must be a number from 0 (greedy) on");
  EXPECT_EQ(message_of([] { check_sampling({.top_k = -3, .top_p = 2}, "line 3: "); }),
            "line 3: top_k = -3: must be a count from 0 (all tokens) on\nline 3: top_p = 2: must be from 0 to 1 (all tokens)");
  for (const Sampling& s : {Sampling{.temperature = NAN}, Sampling{.top_k = -1}, Sampling{.top_p = 1.1}, Sampling{.top_p = NAN},
                            Sampling{.min_p = -0.1}, Sampling{.repetition_penalty = 0}, Sampling{.repetition_penalty = INFINITY}})
    EXPECT_THROW(check_sampling(s), UsageError);
}

}  // namespace
}  // namespace hlat
