// Evaluations between the steps of a run with FP8 products compute with bf16 of the masters, as those of a checkpoint do, in memory that
// the plan has, and leave the run as it was, bit by bit.
#include <gtest/gtest.h>

#include "base/bf16.h"
#include "eval/executor_model.h"
#include "support/host_memory.h"
#include "support/layout_run.h"
#include "support/precision_rows.h"
#include "support/scoring_model.h"
#include "support/token_lists.h"
#include "support/whole_tensors.h"

namespace hlat {
namespace {

constexpr int64_t kEvaluatedSteps = 4;

std::vector<ScoreRequest> texts_to_score(const Config& config) {
  RandomStream random({.seed = 7, .stream = hash_name("requests"), .purpose = Noise::data});
  std::vector<ScoreRequest> list;
  const std::vector<int32_t> shared = test::random_tokens(random, config.train.seq_len / 2, config.model.vocab);
  for (int64_t n = 1; n <= 6; ++n) {
    list.push_back({shared, test::random_tokens(random, n, config.model.vocab)});
    list.push_back({test::random_tokens(random, n, config.model.vocab), test::random_tokens(random, 3, config.model.vocab)});
  }
  return list;
}

// Every byte that a step reads or carries on from, padding of buckets included.
std::vector<std::vector<std::byte>> carried_state(const ParamStore& params) {
  std::vector<std::vector<std::byte>> all;
  const auto add = [&](const Tensor& t) {
    if (t.defined()) all.emplace_back(t.as<std::byte>(), t.as<std::byte>() + t.bytes());
  };
  for (const Bucket& b : params.buckets())
    for (const Tensor& t : {b.weight, b.transposed, b.master, b.m, b.v}) add(t);
  const Fp8State& s = params.fp8_state();
  for (const Tensor& t : {s.scales, s.history, s.met, s.limit}) add(t);
  return all;
}

// What evaluations of a run saw.
class Evaluations {
 public:
  explicit Evaluations(bool parted = false) : parted_(parted) {}

  // After every second step, on every rank.
  AfterStep evaluator() {
    return [this](TrainStep& train, int64_t step) {
      if (step % 2 == 0) evaluate(train.executor(), step == kEvaluatedSteps);
    };
  }

  GlobalTensors wide;                      // the weights that passes multiplied with, of the last evaluation
  std::vector<std::vector<Score>> scores;  // of the ranks, likewise

 private:
  void evaluate(Executor& executor, bool last) {
    KvPasses& passes = passes_of(executor);
    if (last && parted_) part_holders(executor);
    const auto before = carried_state(executor.params());
    executor.fp8().widen();
    std::vector<Score> found = ExecutorModel(passes).score(texts_to_score(executor.config()), {});
    if (last) {
      const std::lock_guard lock(mutex_);
      collect(executor.params());
      scores.push_back(std::move(found));
    }
    executor.fp8().narrow();
    EXPECT_TRUE(carried_state(executor.params()) == before) << "rank " << rank_of(executor.mesh().coord(), executor.mesh().shape());
  }

  // Masters that no other rank sees: of rows that another holder counts.
  static void part_holders(Executor& executor) {
    for (const UpdateUnit& u : executor.params().units())
      if (executor.params().fp8(u.param) && !u.counted) executor.ops().fill(u.tensors.master, 0.125);
  }

  KvPasses& passes_of(Executor& executor) {
    std::unique_ptr<KvPasses>* place = nullptr;
    {
      const std::lock_guard lock(mutex_);
      place = &passes_[rank_of(executor.mesh().coord(), executor.mesh().shape())];
    }
    if (*place != nullptr) return **place;
    const auto before = carried_state(executor.params());
    *place = std::make_unique<KvPasses>(executor, kv_limits(executor.config()));
    (*place)->rehearse();
    EXPECT_TRUE(carried_state(executor.params()) == before) << "after the rehearsal";
    return **place;
  }

  void collect(const ParamStore& params) {
    for (ParamId id = 0; id < params.size(); ++id) {
      const Slice& slice = params.spec(id).slice;
      std::vector<double>& whole = wide[params.spec(id).name];
      whole.resize(static_cast<size_t>(slice.global.numel()), kUnset);
      for (const FlatRun& run : slice.flat_runs(0, slice.local().numel()))
        for (int64_t e = run.begin; e < run.end; ++e) {
          double& place = whole[static_cast<size_t>(run.map.global(e - run.begin))];
          const double value = load_f64(params.wide(id), e);
          EXPECT_TRUE(place == kUnset || place == value) << params.spec(id).name << ": ranks differ";
          place = value;
        }
    }
  }

  bool parted_;
  std::mutex mutex_;
  std::map<int, std::unique_ptr<KvPasses>> passes_;
};

GlobalTensors in_bf16(GlobalTensors tensors) {
  for (auto& [name, values] : tensors)
    for (double& v : values) v = static_cast<double>(to_float(to_bf16(static_cast<float>(v))));
  return tensors;
}

// Scores of weights alone, as a checkpoint has them.
std::vector<std::vector<Score>> scores_of_weights(Config config, const GlobalTensors& weights) {
  config.train.precision = config.train.precision == PrecisionKind::fp8 ? PrecisionKind::mixed : PrecisionKind::bf16_sr;
  config.eval = {};
  config.train.global_batch = config.train.micro_batch * config.parallel.dp;
  std::vector<std::vector<Score>> scores;
  std::mutex mutex;
  with_scoring_model(config, [&](KvPasses& passes, Comm&) {
    const ParamStore& params = passes.executor().params();
    for (ParamId id = 0; id < params.size(); ++id) {
      const Slice& slice = params.spec(id).slice;
      const std::vector<double>& whole = weights.at(params.spec(id).name);
      for (const FlatRun& run : slice.flat_runs(0, slice.local().numel()))
        for (int64_t e = run.begin; e < run.end; ++e)
          store_f64(params.weight(id), e, whole[static_cast<size_t>(run.map.global(e - run.begin))]);
    }
    std::vector<Score> found = ExecutorModel(passes).score(texts_to_score(config), {});
    const std::lock_guard lock(mutex);
    scores.push_back(std::move(found));
  });
  return scores;
}

void expect_same_run(const LayoutResult& a, const LayoutResult& b) {
  ASSERT_EQ(a.steps.size(), b.steps.size());
  for (size_t i = 0; i < a.steps.size(); ++i) {
    EXPECT_EQ(a.steps[i].loss, b.steps[i].loss) << "step " << i + 1;
    EXPECT_EQ(a.steps[i].grad_norm, b.steps[i].grad_norm) << "step " << i + 1;
    EXPECT_EQ(a.steps[i].param_norm, b.steps[i].param_norm) << "step " << i + 1;
  }
  EXPECT_TRUE(a.weights == b.weights);
  EXPECT_TRUE(a.masters == b.masters);
}

Config plain_config(const Layout& layout) {
  Config c = layout.config();
  c.train.global_batch = 12;  // for three replicas too, whose shards leave padding in a bucket
  return c;
}

Config evaluated_config(const Layout& layout) {
  Config c = plain_config(layout);
  c.eval.every = 2;  // the plan has the cache
  return c;
}

class Fp8Evaluation : public testing::TestWithParam<Layout> {};

TEST_P(Fp8Evaluation, HasTheMastersAndLeavesTheRunAsItWas) {
  const Config config = evaluated_config(GetParam());
  Evaluations seen;
  const LayoutResult evaluated = run_layout(config, kEvaluatedSteps, seen.evaluator());
  expect_same_run(evaluated, run_layout(plain_config(GetParam()), kEvaluatedSteps));
  EXPECT_TRUE(seen.wide == in_bf16(evaluated.masters));
  EXPECT_FALSE(evaluated.weights == seen.wide) << "FP8 holds other values";
  ASSERT_EQ(seen.scores.size(), static_cast<size_t>(mesh_shape(config.parallel).ranks()));
  const std::vector<std::vector<Score>> expected = scores_of_weights(config, in_bf16(evaluated.masters));
  for (const std::vector<Score>& rank : seen.scores) {
    ASSERT_EQ(rank.size(), expected.front().size());
    for (size_t i = 0; i < rank.size(); ++i) {
      EXPECT_EQ(rank[i].logprob, expected.front()[i].logprob) << "text " << i;
      EXPECT_EQ(rank[i].logprobs, expected.front()[i].logprobs) << "text " << i;
      EXPECT_EQ(rank[i].greedy, expected.front()[i].greedy) << "text " << i;
    }
  }
}

std::vector<Layout> evaluated_layouts() {
  std::vector<Layout> rows;
  for (const PrecisionKind p : {PrecisionKind::fp8, PrecisionKind::fp8_sr})
    for (Layout l :
         {Layout{}, Layout{.dp = 2}, Layout{.dp = 3, .zero1 = true}, Layout{.dp = 4, .zero1 = true}, Layout{.tp = 2, .sp = true},
          Layout{.tp = 4},  // rows of kv heads
          Layout{.pp = 2, .chunks = 2}, Layout{.pp = 2, .tied = true}, Layout{.tp = 2, .pp = 2, .dp = 2, .sp = true, .zero1 = true}}) {
      l.precision = p;
      rows.push_back(l);
    }
  rows.push_back({.dp = 2, .zero1 = true, .precision = PrecisionKind::fp8, .choices = choices({{&PrecisionConfig::weight_grads, "bf16"}})});
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Table, Fp8Evaluation, testing::ValuesIn(evaluated_layouts()), [](const auto& row) { return row.param.name(); });

// Groups of dp that sum in orders of their own leave holders of the same rows masters that differ: those of the first holder count.
TEST(Fp8EvaluationLibrarySums, RowsOfSeveralRanksAreTheFirstHoldersMasters) {
  for (const bool zero1 : {false, true}) {
    const Layout layout{.tp = 4, .dp = 4, .zero1 = zero1, .precision = PrecisionKind::fp8};
    Evaluations seen(true);
    const LayoutResult evaluated = run_layout_with_library_sums(evaluated_config(layout), kEvaluatedSteps, seen.evaluator());
    expect_same_run(evaluated, run_layout_with_library_sums(plain_config(layout), kEvaluatedSteps));
    EXPECT_TRUE(seen.wide == in_bf16(evaluated.masters)) << "ZeRO-1 " << zero1;
  }
}

}  // namespace
}  // namespace hlat
