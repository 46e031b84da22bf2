// The largest activations, log-sum-exps and scores that a step and its probe tell, against those of a forward pass by hand in double
// precision (support/scalar_llama.h), which shares no code with the model.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "record/monitors.h"
#include "support/host_memory.h"
#include "support/precision_rows.h"
#include "support/real_run.h"
#include "support/ref_run.h"
#include "support/scalar_llama.h"

namespace hlat {
namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();

struct LargestValues {
  std::vector<double> activation;  // by block, then of the head
  std::vector<double> lse, score;  // by block, over all queries; scaled
  std::vector<double> last_score;  // by block, of the last query of the first row
};

scalar::Config by_hand(const ModelConfig& m) {
  return {.layers = static_cast<int>(m.layers),
          .hidden = static_cast<int>(m.hidden),
          .heads = static_cast<int>(m.heads),
          .kv_heads = static_cast<int>(m.kv()),
          .head_dim = static_cast<int>(m.head_dim()),
          .ffn = static_cast<int>(m.ffn),
          .vocab = static_cast<int>(m.vocab),
          .theta = m.rope_theta,
          .eps = m.norm_eps,
          .tied = m.tied};
}

// Norms that start at one, and scores that are all alike, would hide errors: all weights are drawn.
scalar::Params<double> draw_weights_by_hand(const scalar::Config& s, const ParamStore& params) {
  scalar::Params<double> p;
  p.layers.resize(static_cast<size_t>(s.layers));
  ParamId id = 0;
  scalar::for_each_param(s, p, [&](const char*, scalar::Vec<double>& v) {
    std::vector<double> values = normals(params.weight(id).numel(), params.spec(id).name);
    for (double& x : values) x = params.spec(id).init_std == 0 ? 1 + 0.3 * x : 0.15 * x;
    from_f64(params.weight(id), values);
    v = to_f64(params.weight(id++));  // as it was stored
  });
  for (const UpdateUnit& u : params.units())
    if (u.tensors.master.defined()) from_f64(u.tensors.master, to_f64(u.tensors.weight));
  return p;
}

double largest_of(const std::vector<double>& values) {
  double most = 0;
  for (const double v : values) most = std::max(most, std::abs(v));
  return most;
}

void add_scores(LargestValues& out, const scalar::Vec<double>& qkv, const scalar::Heads& s) {
  const auto at = [&](int row, int head, int e) { return qkv[static_cast<size_t>(row * s.width() + head * s.head_dim + e)]; };
  double lse = kNone, score = kNone, last = kNone;
  for (int b = 0; b < s.batch; ++b)
    for (int t = 0; t < s.seq; ++t)
      for (int h = 0; h < s.heads; ++h) {
        double sum = 0;
        for (int j = 0; j <= t; ++j) {
          double product = 0;
          for (int e = 0; e < s.head_dim; ++e)
            product += at(b * s.seq + t, h, e) * at(b * s.seq + j, s.heads + h * s.kv_heads / s.heads, e) / std::sqrt(s.head_dim);
          sum += std::exp(product);
          score = std::max(score, product);
          if (b == 0 && t == s.seq - 1) last = std::max(last, product);
        }
        lse = std::max(lse, std::log(sum));
      }
  out.lse.push_back(lse), out.score.push_back(score), out.last_score.push_back(last);
}

LargestValues values_by_hand(const scalar::Config& c, const scalar::Params<double>& p, const Batch& batch) {
  const int rows = static_cast<int>(batch.rows), seq = static_cast<int>(batch.seq_len);
  LargestValues out;
  scalar::Vec<double> x = scalar::embed(batch.inputs, p.embed, c.hidden);
  for (const scalar::Layer<double>& layer : p.layers) {
    out.activation.push_back(largest_of(x));
    const scalar::Heads s{.batch = rows, .seq = seq, .heads = c.heads, .kv_heads = c.kv_heads, .head_dim = c.head_dim};
    add_scores(out, scalar::rope(scalar::linear(scalar::rmsnorm(x, layer.attn_norm, c.eps), layer.qkv, c.hidden), s, c.theta), s);
    x = scalar::block(c, layer, x, rows, seq);
  }
  out.activation.push_back(largest_of(x));
  return out;
}

std::vector<double> larger_by_place(std::vector<double> a, const std::vector<double>& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] = std::max(a[i], b[i]);
  return a;
}

void expect_near_by_hand(const char* what, const std::vector<double>& told, const std::vector<double>& by_hand, double relative) {
  ASSERT_EQ(told.size(), by_hand.size()) << what;
  for (size_t i = 0; i < told.size(); ++i)
    EXPECT_NEAR(told[i], by_hand[i], relative * std::max(1.0, std::abs(by_hand[i]))) << what << " " << i;
}

// A step that measures and leaves the weights as they are, and a probe whose rows are those of its micro-batch `probed`.
void check_values(TrainStep& step, int probed, double relative) {
  const Executor& executor = step.executor();
  const Config& c = executor.config();
  ASSERT_EQ(c.train.global_batch, 2 * c.train.micro_batch);
  const scalar::Config s = by_hand(c.model);
  const scalar::Params<double> weights = draw_weights_by_hand(s, executor.params());
  RandomRows rows(c);
  Batch first(c.train.micro_batch, c.train.seq_len), second = first;
  rows.read(0, first), rows.read(c.train.micro_batch, second);
  const LargestValues a = values_by_hand(s, weights, first), b = values_by_hand(s, weights, second);
  // Each micro-batch has the largest value of something, or a monitor that forgets one would not be seen.
  const std::vector<double> activation = larger_by_place(a.activation, b.activation), lse = larger_by_place(a.lse, b.lse);
  ASSERT_TRUE(activation != a.activation || lse != a.lse);
  ASSERT_TRUE(activation != b.activation || lse != b.lse);

  const std::optional<Monitors> m = step.run(1, 0, &rows).monitors;
  ASSERT_TRUE(m);
  expect_near_by_hand("max_activation", m->max_activation, activation, relative);
  expect_near_by_hand("max_lse", m->max_lse, lse, relative);

  Monitors p;
  step.probe().run(probed == 0 ? &first : &second, p);
  const LargestValues& own = probed == 0 ? a : b;
  expect_near_by_hand("max_logit", p.max_logit, own.last_score, relative);
  // What docs/monitors.md says of rows that are in the step and the probe: the lse bounds the scores of all queries, from above by
  // itself and from below with log T.
  const double seq = static_cast<double>(c.train.seq_len);
  for (size_t l = 0; l < lse.size(); ++l) {
    EXPECT_LE(p.max_logit[l], m->max_lse[l]) << "block " << l;
    EXPECT_LE(larger_by_place(a.score, b.score)[l], m->max_lse[l] + relative) << "block " << l;
    EXPECT_GE(larger_by_place(a.score, b.score)[l], m->max_lse[l] - std::log(seq) - relative) << "block " << l;
    EXPECT_LT(own.last_score[l], own.score[l]) << "block " << l << ": the last query of one row is not all of them";
  }
}

Config watched_config() {
  Config c = tiny_config();
  c.monitor.every = 1;
  return c;
}

// Largest values only: nothing is added up after them, so double precision leaves rounding of a few hundred terms.
TEST(MonitorValues, OfTheReferenceAreThoseByHand) {
  for (const int probed : {0, 1}) {
    RefRun run(watched_config());
    TrainStep step(run.executor());
    check_values(step, probed, 1e-12);
  }
}

// bf16 keeps 8 bits of each activation: a hundredth of a score of some units.
TEST(MonitorValues, OfTheBackendAreThoseByHand) {
  using enum PrecisionKind;
  for (const auto& [precision, relative] :
       {std::pair(PrecisionChoice{fp32}, 1e-5), {PrecisionChoice{mixed}, 0.02}, {hlat_7b_row(), 0.03}}) {
    SCOPED_TRACE(precision.words());
    for (const int64_t kv : {1, 2, 6}) {
      Config c = watched_config();
      precision.apply(c);
      c.model.kv_heads = kv;
      RealRun run(c);
      check_values(run.train(), 1, relative);
    }
  }
}

// A row of one token has one score, which is its log-sum-exp: the bound is met.
TEST(MonitorValues, OfOneTokenTheScoreIsTheLogSumExp) {
  Config c = watched_config();
  c.train.seq_len = 1;
  c.train.global_batch = c.train.micro_batch = 1;
  RefRun run(c);
  draw_weights_by_hand(by_hand(c.model), run.executor().params());
  TrainStep step(run.executor());
  RandomRows rows(c);
  Batch batch(1, 1);
  rows.read(0, batch);
  const Monitors m = *step.run(1, 0, &rows).monitors;
  Monitors p;
  step.probe().run(&batch, p);
  expect_near_by_hand("max_logit", p.max_logit, m.max_lse, 1e-12);
}

}  // namespace
}  // namespace hlat
