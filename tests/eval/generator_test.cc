// Generated texts: in any company, with any cache and on any layout those of the request alone, computed token by token without a cache.
#include "eval/generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "base/rng.h"
#include "eval/sampler.h"
#include "support/layout_run.h"
#include "support/message_of.h"
#include "support/one_rank.h"
#include "support/real_run.h"
#include "support/scoring_model.h"
#include "support/token_lists.h"

namespace hlat {
namespace {

// A few-shot prompt with several questions, samples of one prompt, single tokens, and texts to the model's full length.
std::vector<GenerateRequest> generate_requests(const Config& config, const Sampling& sampling = {}) {
  RandomStream random({.seed = 21, .stream = hash_name("prompts"), .purpose = Noise::data});
  const int64_t vocab = config.model.vocab, length = config.train.seq_len;
  std::vector<GenerateRequest> list;
  const auto add = [&](std::vector<int32_t> prompt, int64_t max_new) {
    list.push_back({.prompt = std::move(prompt), .max_new = max_new, .sampling = sampling});
    list.back().sampling.seed += list.size();
  };
  const std::vector<int32_t> shots = test::random_tokens(random, length / 2, vocab);
  for (int question = 0; question < 3; ++question) {
    std::vector<int32_t> prompt = shots;
    for (const int32_t id : test::random_tokens(random, 1 + 2 * question, vocab)) prompt.push_back(id);
    add(prompt, 3 + question);
  }
  const std::vector<int32_t> sampled = test::random_tokens(random, length / 3, vocab);
  for (int sample = 0; sample < 4; ++sample) add(sampled, 5);
  add({1}, length - 1);
  add({2}, 1);
  add(test::random_tokens(random, length - 1, vocab), 1);
  add(test::random_tokens(random, length / 2, vocab), length - length / 2);
  return list;
}

// Without a cache: the logits that follow each prefix of one text.
Generation alone(Executor& executor, const GenerateRequest& request) {
  const int64_t rows = executor.config().train.micro_batch;
  const auto vocab = static_cast<size_t>(executor.config().model.vocab);
  std::vector<int32_t> text = request.prompt;
  Sampler sampler(request.sampling, request.prompt);
  Generation result;
  while (static_cast<int64_t>(result.tokens.size()) < request.max_new) {
    std::vector<int32_t> ids;
    for (int64_t row = 0; row < rows; ++row) ids.insert(ids.end(), text.begin(), text.end());
    const auto length = static_cast<int64_t>(text.size());
    std::vector<float> logits = executor.next_logits(ids, length, length);
    logits.resize(vocab);
    const int32_t id = sampler.next(logits);
    if (id == request.end) {
      result.reason = EndReason::end_token;
      return result;
    }
    result.tokens.push_back({.id = id, .logprob = static_cast<float>(log_probability(logits, id))});
    text.push_back(id);
  }
  return result;
}

std::vector<Generation> alone(Executor& executor, const std::vector<GenerateRequest>& requests) {
  std::vector<Generation> results;
  for (const GenerateRequest& r : requests) results.push_back(alone(executor, r));
  return results;
}

std::vector<int32_t> ids_of(const Generation& generation) {
  std::vector<int32_t> ids;
  for (const NewToken& token : generation.tokens) ids.push_back(token.id);
  return ids;
}

void expect_equal(const std::vector<Generation>& found, const std::vector<Generation>& expected, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(ids_of(found[i]), ids_of(expected[i])) << what << ", request " << i;
    EXPECT_EQ(found[i].reason, expected[i].reason) << what << ", request " << i;
  }
}

Config small_config() {
  Config c = with_one_rank(tiny_config());
  c.model.init_std = 0.3;  // logits that differ
  return c;
}

TEST(Generator, BatchedEqualsSingleEqualsNoCache) {
  const Config config = small_config();
  const std::vector<GenerateRequest> requests = generate_requests(config);
  with_scoring_model(config, [&](KvPasses& passes, Comm&) {
    const std::vector<Generation> expected = alone(passes.executor(), requests);
    expect_equal(generate_all(passes, requests), expected, "all at once");
    std::vector<Generation> single;
    for (const GenerateRequest& r : requests) single.push_back(generate_all(passes, {&r, 1}).front());
    expect_equal(single, expected, "one by one");
  });
}

TEST(Generator, ASeedDrawsTheSameTextAloneAndInABatch) {
  const Config config = small_config();
  const std::vector<GenerateRequest> requests =
      generate_requests(config, {.temperature = 0.9, .top_k = 40, .top_p = 0.95, .min_p = 0.01, .repetition_penalty = 1.2, .seed = 5});
  with_scoring_model(config, [&](KvPasses& passes, Comm&) {
    const std::vector<Generation> expected = alone(passes.executor(), requests);
    expect_equal(generate_all(passes, requests), expected, "all at once");
    expect_equal({generate_all(passes, {&requests[4], 1}).front()}, {expected[4]}, "one");
    EXPECT_NE(ids_of(expected[3]), ids_of(expected[4])) << "samples of one prompt with different seeds";
  });
}

TEST(Generator, TheOrderOfRequestsDoesNotMatter) {
  const Config config = small_config();
  std::vector<GenerateRequest> requests = generate_requests(config, {.temperature = 1});
  for (size_t i = 0; i < requests.size(); i += 3) requests[i].sampling = {};  // likeliest tokens and draws in one call
  with_scoring_model(config, [&](KvPasses& passes, Comm&) {
    std::vector<Generation> expected = generate_all(passes, requests);
    for (int turn = 0; turn < 3; ++turn) {
      std::rotate(requests.begin(), requests.begin() + 4, requests.end());
      std::rotate(expected.begin(), expected.begin() + 4, expected.end());
      expect_equal(generate_all(passes, requests), expected, "turned");
    }
  });
}

// Caches in which requests wait for each other, down to one that holds no more than a text; passes of few tokens.
TEST(Generator, RequestsWaitForRoomInASmallCache) {
  Config config = small_config();
  const std::vector<GenerateRequest> requests = generate_requests(config);
  std::vector<Generation> expected;
  with_scoring_model(config, [&](KvPasses& passes, Comm&) { expected = generate_all(passes, requests); });
  config.train.micro_batch = 1;
  for (const int64_t slots : {config.train.seq_len, config.train.seq_len + 5, 2 * config.train.seq_len}) {
    config.eval.cache_tokens = slots;
    with_scoring_model(config, [&](KvPasses& passes, Comm&) {
      ASSERT_EQ(passes.limits().slots, slots);
      expect_equal(generate_all(passes, requests), expected, fmt::format("{} slots", slots));
    });
  }
}

TEST(Generator, RowsEndAtTheirEndTokenAndOthersGoOn) {
  const Config config = small_config();
  std::vector<GenerateRequest> requests = generate_requests(config);
  with_scoring_model(config, [&](KvPasses& passes, Comm&) {
    const std::vector<Generation> whole = generate_all(passes, requests);
    // For each text a token of its own that ends it, at different places.
    std::vector<size_t> cut(requests.size());
    for (size_t i = 0; i < requests.size(); ++i) {
      const std::vector<int32_t> ids = ids_of(whole[i]);
      requests[i].end = ids[i % ids.size()];
      cut[i] = static_cast<size_t>(std::find(ids.begin(), ids.end(), requests[i].end) - ids.begin());
    }
    const std::vector<Generation> found = generate_all(passes, requests);
    for (size_t i = 0; i < requests.size(); ++i) {
      EXPECT_EQ(found[i].reason, EndReason::end_token) << i;
      std::vector<int32_t> expected = ids_of(whole[i]);
      expected.resize(cut[i]);
      EXPECT_EQ(ids_of(found[i]), expected) << "request " << i << ": without the end token";
    }
  });
}

TEST(Generator, KeepSeesEveryTokenInOrderAndEndsATextWithItsLast) {
  const Config config = small_config();
  const std::vector<GenerateRequest> requests = generate_requests(config);
  with_scoring_model(config, [&](KvPasses& passes, Comm&) {
    const std::vector<Generation> whole = generate_all(passes, requests);
    std::vector<std::vector<int32_t>> seen(requests.size());
    std::vector<size_t> told;
    const auto keep = [&](size_t request, const NewToken& token) {
      seen[request].push_back(token.id);
      return seen[request].size() < 2;
    };
    const std::vector<Generation> found = generate_all(passes, requests, keep, [&](size_t n) { told.push_back(n); });
    for (size_t i = 0; i < requests.size(); ++i) {
      EXPECT_EQ(seen[i], ids_of(found[i])) << i;
      std::vector<int32_t> expected = ids_of(whole[i]);
      expected.resize(std::min<size_t>(expected.size(), 2));
      EXPECT_EQ(seen[i], expected) << i;
      EXPECT_EQ(found[i].reason, requests[i].max_new < 2 ? EndReason::length : EndReason::stopped) << i;
    }
    EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
    EXPECT_EQ(told.back(), requests.size());
  });
}

TEST(Generator, LogprobsAreOfTheModelsOwnDistribution) {
  const Config config = small_config();
  std::vector<GenerateRequest> requests = generate_requests(config, {.temperature = 0.5, .top_k = 5});
  for (GenerateRequest& r : requests) r.logprobs = true;
  requests[0].sampling = {};
  with_scoring_model(config, [&](KvPasses& passes, Comm&) {
    const std::vector<Generation> expected = alone(passes.executor(), requests), found = generate_all(passes, requests);
    expect_equal(found, expected, "with logprobs");
    for (size_t i = 0; i < found.size(); ++i)
      for (size_t t = 0; t < found[i].tokens.size(); ++t)
        EXPECT_NEAR(found[i].tokens[t].logprob, expected[i].tokens[t].logprob, 1e-5) << "request " << i << ", token " << t;
  });
}

// Ten samples of a prompt: nine of ten readings of it are saved.
TEST(Generator, ASharedBeginningIsComputedOnce) {
  const Config config = small_config();
  RandomStream random({.seed = 2, .stream = hash_name("prompts"), .purpose = Noise::data});
  std::vector<GenerateRequest> same, different;
  const std::vector<int32_t> prompt = test::random_tokens(random, 32, config.model.vocab);
  for (uint64_t i = 0; i < 10; ++i) {
    same.push_back({.prompt = prompt, .max_new = 2, .sampling = {.temperature = 1, .seed = i}});
    different.push_back({.prompt = test::random_tokens(random, 32, config.model.vocab), .max_new = 2, .sampling = same.back().sampling});
  }
  with_scoring_model(config, [&](KvPasses& passes, Comm&) {
    const auto flops = [&](const std::vector<GenerateRequest>& requests) {
      const double before = passes.executor().ops().cost()[OpKind::matmul].flops;
      generate_all(passes, requests);
      return passes.executor().ops().cost()[OpKind::matmul].flops - before;
    };
    EXPECT_LT(flops(same), 0.4 * flops(different));
  });
}

TEST(Generator, ARequestThatCannotBeDoneIsRefusedBeforeAnythingIsComputed) {
  const Config config = small_config();
  with_scoring_model(config, [&](KvPasses& passes, Comm&) {
    std::vector<GenerateRequest> requests = {{.prompt = {1, 2}, .max_new = 3}, {.prompt = {1}, .max_new = 3, .sampling = {.top_p = 2}}};
    const auto keep = [](size_t, const NewToken&) -> bool { throw std::logic_error("a token came"); };
    EXPECT_EQ(message_of([&] { generate_all(passes, requests, keep); }), "request 2: top_p = 2: must be from 0 to 1 (all tokens)");
    requests = {{.prompt = {1}, .max_new = config.train.seq_len}};
    EXPECT_THROW(generate_all(passes, requests, keep), CheckFailed) << "longer than the model";
    requests = {{.prompt = {}, .max_new = 1}};
    EXPECT_THROW(generate_all(passes, requests, keep), CheckFailed);
    requests = {{.prompt = {1}, .max_new = 0}, {.prompt = {1, 2}, .max_new = 0}};
    for (const Generation& g : generate_all(passes, requests, keep)) EXPECT_TRUE(g.tokens.empty());
    EXPECT_TRUE(generate_all(passes, {}).empty());
  });
}

// Weights that went wrong must not become a text.
TEST(Generator, LogitsThatAreNotFiniteAreAnError) {
  const Config config = small_config();
  with_scoring_model(config, [&](KvPasses& passes, Comm&) {
    Executor& executor = passes.executor();
    for (ParamId id = 0; id < executor.params().size(); ++id) executor.ops().fill(executor.params().weight(id), NAN);
    for (const double temperature : {0.0, 1.0}) {
      const std::vector<GenerateRequest> requests = {{.prompt = {1, 2}, .max_new = 3, .sampling = {.temperature = temperature}}};
      EXPECT_THROW(generate_all(passes, requests), NumericalError) << temperature;
    }
  });
}

class GeneratorLayouts : public testing::TestWithParam<Layout> {};

TEST_P(GeneratorLayouts, TextsAreThoseOfOneRank) {
  Config one = Layout{.kv = GetParam().kv, .tied = GetParam().tied}.config();
  one.model.init_std = 0.3;
  one.train.global_batch = one.train.micro_batch;
  std::vector<GenerateRequest> requests = generate_requests(one, {.temperature = 0.8, .top_p = 0.9});
  for (size_t i = 0; i < requests.size(); i += 2) requests[i].sampling = {};
  std::vector<Generation> expected;
  with_scoring_model(one, [&](KvPasses& passes, Comm&) { expected = ExecutorModel(passes).generate(requests, {}, {}); });
  Config config = GetParam().config();
  config.model.init_std = 0.3;
  config.train.global_batch = config.train.micro_batch * config.parallel.dp;
  std::mutex mutex;
  with_scoring_model(config, [&](KvPasses& passes, Comm& world) {
    const std::vector<Generation> found = ExecutorModel(passes).generate(requests, {}, {});
    const std::lock_guard lock(mutex);
    expect_equal(found, expected, fmt::format("rank {}", world.rank()));
  });
}

INSTANTIATE_TEST_SUITE_P(Layouts, GeneratorLayouts,
                         testing::Values(Layout{.dp = 2}, Layout{.tp = 2}, Layout{.pp = 2}, Layout{.pp = 2, .chunks = 2},
                                         Layout{.tp = 2, .pp = 2, .dp = 2, .sp = true}, Layout{.tp = 4, .kv = 1}),
                         [](const auto& i) { return i.param.name(); });

}  // namespace
}  // namespace hlat
