// Log-likelihoods with a cache and shared beginnings == those of each text computed alone without either, on every layout.
#include "eval/scorer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <mutex>
#include <numeric>

#include "base/rng.h"
#include "support/layout_run.h"
#include "support/one_rank.h"
#include "support/real_run.h"
#include "support/scoring_model.h"
#include "support/token_lists.h"

namespace hlat {
namespace {

// Few-shot prompts with several questions, choices of one token and of many, a text alone, and texts of full length.
std::vector<ScoreRequest> score_requests(const Config& config, uint64_t seed = 7) {
  RandomStream random({.seed = seed, .stream = hash_name("requests"), .purpose = Noise::data});
  const int64_t vocab = config.model.vocab, length = config.train.seq_len;
  std::vector<ScoreRequest> list;
  for (int prompt = 0; prompt < 2; ++prompt) {
    const std::vector<int32_t> shots = test::random_tokens(random, length / 2, vocab);
    for (int question = 0; question < 3; ++question) {
      std::vector<int32_t> context = shots;
      for (const int32_t id : test::random_tokens(random, 1 + static_cast<int64_t>(random.below(4)), vocab)) context.push_back(id);
      const auto most = static_cast<uint64_t>(length + 1 - static_cast<int64_t>(context.size()));
      for (int choice = 0; choice < 4; ++choice)
        list.push_back({context, test::random_tokens(random, question == 0 ? 1 : 1 + static_cast<int64_t>(random.below(most)), vocab)});
    }
  }
  list.push_back({test::random_tokens(random, 1, vocab), test::random_tokens(random, length, vocab)});  // a window of perplexity
  list.push_back({test::random_tokens(random, length, vocab), test::random_tokens(random, 1, vocab)});
  list.push_back(list[3]);
  return list;
}

// One text at a time, without a cache: the logits that follow each prefix.
std::vector<Score> alone(Executor& executor, const std::vector<ScoreRequest>& requests) {
  const int64_t rows = executor.config().train.micro_batch, vocab = executor.config().model.vocab;
  std::vector<Score> scores;
  for (const ScoreRequest& r : requests) {
    std::vector<int32_t> text = r.context;
    text.insert(text.end(), r.continuation.begin(), r.continuation.end());
    text.pop_back();
    const auto seq = static_cast<int64_t>(text.size());
    std::vector<int32_t> ids;
    for (int64_t row = 0; row < rows; ++row) ids.insert(ids.end(), text.begin(), text.end());
    Score s;
    for (size_t i = 0; i < r.continuation.size(); ++i) {
      const std::vector<float> next = executor.next_logits(ids, seq, static_cast<int64_t>(r.context.size() + i));
      const float top = *std::max_element(next.begin(), next.begin() + vocab);
      double sum = 0;
      for (int64_t v = 0; v < vocab; ++v) sum += std::exp(static_cast<double>(next[static_cast<size_t>(v)] - top));
      const float target = next[static_cast<size_t>(r.continuation[i])];
      s.logprobs.push_back(static_cast<float>(target - top - std::log(sum)));
      s.logprob += target - top - std::log(sum);
      s.greedy = s.greedy && target == top;
    }
    scores.push_back(s);
  }
  return scores;
}

void expect_equal(const std::vector<Score>& found, const std::vector<Score>& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].logprobs.size(), expected[i].logprobs.size()) << what;
    for (size_t t = 0; t < found[i].logprobs.size(); ++t)
      ASSERT_NEAR(found[i].logprobs[t], expected[i].logprobs[t], tolerance * std::max(1.0f, -expected[i].logprobs[t]))
          << what << ", request " << i << ", token " << t;
    EXPECT_NEAR(found[i].logprob, expected[i].logprob, tolerance * static_cast<double>(found[i].logprobs.size())) << what;
    EXPECT_EQ(found[i].greedy, expected[i].greedy) << what << ", request " << i;
  }
}

Config scoring_config() {
  Config c = with_one_rank(tiny_config());
  c.model.init_std = 0.15;  // logits that differ
  return c;
}

TEST(Scorer, TheCacheEqualsNoCache) {
  const Config config = scoring_config();
  const std::vector<ScoreRequest> requests = score_requests(config);
  with_scoring_model(config, [&](KvPasses& passes, Comm&) {
    RealRun plain(config);
    const int64_t tokens = config.train.micro_batch * config.train.seq_len;
    plain.executor().next_logits(std::vector<int32_t>(static_cast<size_t>(tokens), 0), config.train.seq_len, 1);  // takes the memory
    const std::vector<Score> expected = alone(plain.executor(), requests);
    expect_equal(score_all(passes, requests), expected, 1e-5, "all at once");
    std::vector<Score> single;
    for (const ScoreRequest& r : requests) single.push_back(score_all(passes, {&r, 1}).front());
    expect_equal(single, expected, 1e-5, "one by one");
  });
}

TEST(Scorer, SmallCachesAndPassesGiveTheSame) {
  Config config = scoring_config();
  const std::vector<ScoreRequest> requests = score_requests(config);
  std::vector<Score> expected;
  with_scoring_model(config, [&](KvPasses& passes, Comm&) { expected = score_all(passes, requests); });
  config.train.micro_batch = 1;
  for (const int64_t slots : {config.train.seq_len, config.train.seq_len + 5, 3 * config.train.seq_len}) {
    config.eval.cache_tokens = slots;
    with_scoring_model(config, [&](KvPasses& passes, Comm&) {
      EXPECT_EQ(passes.limits().slots, slots);
      expect_equal(score_all(passes, requests), expected, 1e-5, fmt::format("{} slots", slots));
    });
  }
}

// More questions about one token than a pass has room for.
TEST(Scorer, ManyChoicesOfOneTokenAfterOneContext) {
  const Config config = scoring_config();
  std::vector<ScoreRequest> requests;
  for (int32_t id = 0; id < config.model.vocab; ++id) requests.push_back({{5, 6, 7}, {id}});
  for (int32_t id = 0; id < config.model.vocab; ++id) requests.push_back({{5, 6, 7, 8}, {id}});
  with_scoring_model(config, [&](KvPasses& passes, Comm&) {
    ASSERT_GT(static_cast<int64_t>(requests.size()), passes.limits().asked);
    const std::vector<Score> scores = score_all(passes, requests);
    for (const size_t begin : {size_t{0}, requests.size() / 2}) {
      double sum = 0;
      int greedy = 0;
      for (size_t i = begin; i < begin + requests.size() / 2; ++i) sum += std::exp(scores[i].logprob), greedy += scores[i].greedy;
      EXPECT_NEAR(sum, 1, 1e-5) << "probabilities of all tokens";
      EXPECT_EQ(greedy, 1);
    }
  });
}

TEST(Scorer, ToldCountsEveryRequestOnce) {
  const Config config = scoring_config();
  const std::vector<ScoreRequest> requests = score_requests(config);
  with_scoring_model(config, [&](KvPasses& passes, Comm&) {
    std::vector<size_t> told;
    score_all(passes, requests, [&](size_t n) { told.push_back(n); });
    EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
    EXPECT_EQ(told.back(), requests.size());
    EXPECT_GT(told.size(), 1u);
  });
}

class ScorerLayouts : public testing::TestWithParam<Layout> {};

TEST_P(ScorerLayouts, ScoresAreThoseOfOneRank) {
  Config one = Layout{.kv = GetParam().kv, .tied = GetParam().tied}.config();
  one.model.init_std = 0.15;
  one.train.global_batch = one.train.micro_batch;
  const std::vector<ScoreRequest> requests = score_requests(one);
  std::vector<Score> expected;
  with_scoring_model(one, [&](KvPasses& passes, Comm&) { expected = ExecutorModel(passes).score(requests, {}); });
  Config config = GetParam().config();
  config.model.init_std = 0.15;
  config.train.global_batch = config.train.micro_batch * config.parallel.dp;
  std::mutex mutex;
  with_scoring_model(config, [&](KvPasses& passes, Comm& world) {
    const std::vector<Score> found = ExecutorModel(passes).score(requests, {});
    const std::lock_guard lock(mutex);
    expect_equal(found, expected, 1e-5, fmt::format("rank {}", world.rank()));
  });
}

INSTANTIATE_TEST_SUITE_P(Layouts, ScorerLayouts,
                         testing::Values(Layout{.dp = 2}, Layout{.dp = 3}, Layout{.tp = 2}, Layout{.tp = 3, .sp = true}, Layout{.pp = 2},
                                         Layout{.pp = 2, .chunks = 2}, Layout{.tp = 2, .pp = 2, .dp = 2, .sp = true},
                                         Layout{.tp = 8, .sp = true}, Layout{.pp = 4, .tied = true}, Layout{.tp = 4, .kv = 1}),
                         [](const auto& i) { return i.param.name(); });

}  // namespace
}  // namespace hlat
