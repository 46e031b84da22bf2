// The equivalence table: every layout of ranks trains the same model on the same batches as one rank.
//
// Tolerances are those of support/layout_tolerance.h.
// On a GPU the ranks of a layout share it and exchange tensors through host memory; the same table and tolerances hold, against one rank
// on the GPU.
// Each tensor by itself: its gradient of the first step, and how far the steps moved it (its master where there is one), both relative
// to one rank's. That is where a tensor that is never updated (1) or gets half of its gradient (0.5; Adam hides it in the weights) shows.
// Gradients carry the noise r of the layout, kGradientNoise at most. Where the gradient is below that noise, Adam may move an element the
// other way: with normally distributed gradients that is r / pi of them, each 2 lr off, so movements differ by
// 2 sqrt(r / pi).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "support/layout_run.h"
#include "support/layout_tolerance.h"
#include "support/precision_rows.h"
#include "support/staged_host.h"
#include "support/test_device.h"

namespace hlat {
namespace {

constexpr int64_t kSteps = 3;

// One rank with the same model and global batch, trained once on each device.
const LayoutResult& reference(const Layout& l, const MakeBackend& make) {
  static std::map<std::pair<bool, std::string>, LayoutResult> all;
  Layout one = l;
  one.tp = one.pp = one.dp = one.chunks = 1;
  one.sp = one.zero1 = false;
  one.cuts = {};
  one.recompute = "none";
  one.coalesced = true;
  one.micro = 1;
  const auto [it, fresh] = all.try_emplace({make != nullptr, one.name()});
  if (fresh) it->second = run_layout(one.config(), kSteps, {}, {}, make);
  return it->second;
}

// The tensors that a bf16 layout got wrong, by name.
std::map<std::string, std::string> wrong_tensors(const LayoutResult& one, const LayoutResult& many, bool fp8) {
  std::map<std::string, std::string> wrong;
  const double gradient_noise = fp8 ? kFp8GradientNoise : kGradientNoise, movement_noise = fp8 ? kFp8MovementNoise : kMovementNoise;
  for (const auto& [name, masters] : one.masters) {
    const std::vector<double> zero(masters.size());
    const double gradient = relative_distance(many.gradients.at(name), one.gradients.at(name), zero);
    const double movement = relative_distance(many.masters.at(name), masters, one.initial.at(name));
    if (!(gradient <= gradient_noise && movement <= movement_noise))
      wrong[name] = fmt::format("gradient off by {:.3f}, movement by {:.3f}", gradient, movement);
  }
  return wrong;
}

void expect_like_one_rank(const Layout& layout, const MakeBackend& make) {
  const Config config = layout.config();
  const LayoutResult& one = reference(layout, make);
  const LayoutResult many = run_layout(config, kSteps, {}, {}, make);
  const bool exact = config.train.precision == PrecisionKind::fp32, fp8 = precision_of(config).fp8;
  expect_near(many.steps, one.steps, exact, fp8);
  ASSERT_EQ(many.weights.size(), one.weights.size());
  const double lr = config.optim.lr;
  for (const auto& [name, weights] : one.weights) {
    if (fp8) break;  // codes of FP8 say little: masters are compared below
    const double rms = rms_difference(many.weights.at(name), weights);
    EXPECT_LE(rms, most_rms_difference(exact, lr)) << name;
  }
  for (const auto& [name, words] : wrong_tensors(one, many, fp8)) ADD_FAILURE() << name << ": " << words;
}

class LayoutEquivalence : public ::testing::TestWithParam<Layout> {};
TEST_P(LayoutEquivalence, TrainsLikeOneRank) { expect_like_one_rank(GetParam(), {}); }

class LayoutEquivalenceOnGpu : public ::testing::TestWithParam<Layout> {};
TEST_P(LayoutEquivalenceOnGpu, TrainsLikeOneRank) {
  expect_like_one_rank(GetParam(), [] { return cuda_backend(false); });
}

// NOLINTBEGIN(bugprone-*)
// Layers of 0.7 MiB of f32 gradients: a bucket of 1 MiB is cut between every second pair of them.
std::vector<Layout> many_buckets() {
  return {
      {.dp = 2, .layers = 8, .ffn = 840},
      {.dp = 4, .zero1 = true, .layers = 8, .ffn = 840},
      {.pp = 2, .dp = 2, .zero1 = true, .chunks = 2, .layers = 8, .tied = true, .ffn = 840},
      {.tp = 2, .dp = 2, .sp = true, .zero1 = true, .layers = 8, .ffn = 1680},
      {.dp = 2, .zero1 = true, .layers = 8, .ffn = 840, .precision = PrecisionKind::mixed},
  };
}

std::vector<Layout> table() {
  using enum PrecisionKind;
  std::vector<Layout> t = {
      // One axis at a time.
      {.tp = 2},
      {.tp = 3},
      {.tp = 4},
      {.tp = 5},
      {.tp = 8},
      {.tp = 8, .kv = 1},
      {.tp = 2, .kv = 8},
      {.tp = 3, .kv = 8},
      {.tp = 6, .kv = 4},
      {.tp = 2, .sp = true},
      {.tp = 3, .sp = true},
      {.tp = 4, .sp = true},
      {.tp = 8, .sp = true},
      {.tp = 4, .sp = true, .kv = 8},
      {.tp = 7, .sp = true, .kv = 4},
      {.tp = 4, .sp = true, .recompute = "full"},
      {.tp = 4, .recompute = "selective"},
      {.tp = 3, .sp = true, .recompute = "every:2", .tied = true},
      {.tp = 4, .vocab = 97, .tied = true},
      {.tp = 8, .sp = true, .micro = 2},
      {.dp = 2},
      {.dp = 4},
      {.dp = 8},
      {.dp = 2, .zero1 = true},
      {.dp = 4, .zero1 = true},
      {.dp = 8, .zero1 = true},
      {.dp = 2, .zero1 = true, .micro = 2, .tied = true},
      {.dp = 4, .zero1 = true, .micro = 2},
      {.pp = 2},
      {.pp = 3},
      {.pp = 4},
      {.pp = 2, .tied = true},
      {.pp = 4, .tied = true},
      {.pp = 2, .cuts = {1}},
      {.pp = 2, .cuts = {3}},
      {.pp = 3, .cuts = {1, 2}, .recompute = "full"},
      {.pp = 4, .micro = 4},
      {.pp = 4, .micro = 8},
      {.pp = 3, .layers = 7},
      {.pp = 2, .chunks = 2},
      {.pp = 2, .chunks = 3, .layers = 7},
      {.pp = 4, .chunks = 2, .layers = 8},
      {.pp = 2, .chunks = 2, .tied = true},
      {.pp = 2, .chunks = 2, .cuts = {1, 2, 3}, .recompute = "selective"},
      {.pp = 3, .chunks = 2, .layers = 7, .micro = 2},
      {.pp = 4, .chunks = 2, .layers = 8, .micro = 4},
      // Two axes.
      {.tp = 2, .dp = 2},
      {.tp = 2, .dp = 2, .zero1 = true},
      {.tp = 4, .dp = 2, .sp = true, .zero1 = true},
      {.tp = 3, .dp = 4, .zero1 = true},
      {.tp = 8, .dp = 2, .sp = true, .zero1 = true},
      {.tp = 4, .dp = 4, .sp = true, .zero1 = true, .tied = true},
      {.tp = 2, .pp = 2},
      {.tp = 4, .pp = 2, .sp = true},
      {.tp = 4, .pp = 4, .sp = true, .recompute = "selective"},
      {.tp = 3, .pp = 3, .tied = true},
      {.tp = 5, .pp = 3, .sp = true},
      {.tp = 2, .pp = 2, .sp = true, .chunks = 2},
      {.tp = 8, .pp = 2, .kv = 4},
      {.pp = 2, .dp = 2},
      {.pp = 2, .dp = 4, .zero1 = true},
      {.pp = 4, .dp = 4, .zero1 = true},
      {.pp = 2, .dp = 2, .zero1 = true, .chunks = 2, .tied = true},
      {.pp = 4, .dp = 2, .zero1 = true, .recompute = "full", .tied = true},
      // All three.
      {.tp = 2, .pp = 2, .dp = 2},
      {.tp = 2, .pp = 2, .dp = 2, .sp = true, .zero1 = true},
      {.tp = 2, .pp = 2, .dp = 4, .sp = true, .zero1 = true, .tied = true},
      {.tp = 4, .pp = 2, .dp = 2, .sp = true, .zero1 = true, .recompute = "selective"},
      {.tp = 2, .pp = 4, .dp = 2, .sp = true, .zero1 = true},
      {.tp = 2, .pp = 2, .dp = 2, .sp = true, .zero1 = true, .chunks = 2, .recompute = "full", .tied = true},
      {.tp = 3, .pp = 2, .dp = 2, .zero1 = true, .kv = 8},
      {.tp = 4, .pp = 2, .dp = 2, .sp = true, .zero1 = true, .kv = 1, .vocab = 97},
  };
  for (const Layout& l : many_buckets()) t.push_back(l);
  // Every other precision policy on layouts that meet all the code of the three axes.
  for (const PrecisionKind p : {mixed, mixed_sr, bf16_sr, bf16})
    for (const Layout& l : {Layout{.tp = 4, .sp = true}, Layout{.dp = 4, .zero1 = true}, Layout{.pp = 2, .chunks = 2},
                            Layout{.tp = 2, .pp = 2, .dp = 2, .sp = true, .zero1 = true, .tied = true}}) {
      t.push_back(l);
      t.back().precision = p;
    }
  for (const Layout& l : {Layout{.tp = 3}, Layout{.tp = 4, .sp = true, .recompute = "selective"}, Layout{.tp = 2, .dp = 2, .kv = 4}}) {
    t.push_back(l);
    t.back().coalesced = false;
  }
  using P = PrecisionConfig;
  const auto add = [&](PrecisionKind p, Layout l, const std::vector<std::pair<std::string P::*, std::string>>& values) {
    l.precision = p;
    l.choices = choices(values);
    t.push_back(l);
  };
  add(mixed, {.tp = 4, .sp = true}, {{&P::tp_sums, "f32"}});
  add(mixed, {.tp = 3, .tied = true}, {{&P::tp_sums, "f32"}, {&P::grads, "bf16"}});
  add(mixed, {.dp = 4, .zero1 = true}, {{&P::dp_sums, "bf16"}});
  add(bf16_sr, {.dp = 4}, {{&P::dp_sums, "f32"}});
  add(mixed, {.tp = 2, .dp = 2, .kv = 4}, {{&P::softmax, "bf16"}});
  add(mixed, {.tp = 2, .pp = 2, .sp = true}, {{&P::norms, "bf16"}, {&P::loss, "bf16"}});
  // Noise is the same in every layout, but bf16 partial products of tp are rounded before they are summed: other values, other noise.
  add(bf16_sr, {.dp = 4, .zero1 = true, .recompute = "full"}, {{&P::round_activations, "stochastic"}, {&P::round_sums, "stochastic"}});
  add(mixed, {.tp = 4, .pp = 2, .tied = true}, {{&P::round_activations, "stochastic"}, {&P::tp_sums, "f32"}});
  for (const PrecisionKind p : {fp8, fp8_sr})
    for (const Layout& l : {Layout{.tp = 4}, Layout{.tp = 4, .sp = true}, Layout{.dp = 4, .zero1 = true}, Layout{.dp = 2, .micro = 2},
                            Layout{.pp = 2, .chunks = 2}, Layout{.tp = 2, .pp = 2, .dp = 2, .sp = true, .zero1 = true, .tied = true}}) {
      t.push_back(l);
      t.back().precision = p;
    }
  add(fp8, {.tp = 2, .sp = true, .heads = 16}, {});  // of 8 columns, 64 on a rank
  add(fp8, {.tp = 4, .dp = 2, .zero1 = true, .heads = 16}, {});
  add(fp8, {.tp = 4, .pp = 2, .kv = 1, .heads = 16}, {});
  add(fp8, {.tp = 2, .dp = 2, .sp = true, .recompute = "selective"}, {{&P::fp8_grads, "e4m3"}});
  add(fp8, {.tp = 2, .dp = 2, .sp = true, .zero1 = true}, {{&P::weight_grads, "bf16"}});
  add(fp8, {.tp = 2, .pp = 2, .recompute = "full"}, {{&P::tp_sums, "f32"}});
  return t;
}
// NOLINTEND(bugprone-*)

INSTANTIATE_TEST_SUITE_P(Table, LayoutEquivalence, ::testing::ValuesIn(table()),
                         [](const ::testing::TestParamInfo<Layout>& row) { return row.param.name(); });

INSTANTIATE_TEST_SUITE_P(cuda, LayoutEquivalenceOnGpu, ::testing::ValuesIn(has_gpu() ? table() : std::vector<Layout>{}),
                         [](const ::testing::TestParamInfo<Layout>& row) { return row.param.name(); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LayoutEquivalenceOnGpu);

// Of the rows with many buckets some are cut because they are full, hold several groups of parameters, and have others after them, so that
// their reduction overlaps with the rest of the backward.
TEST(LayoutEquivalenceSelfTest, ManyBucketsAreCutBySize) {
  for (const Layout& l : many_buckets()) {
    const Config c = l.config();
    run_layout(c, 1, [&](TrainStep& train, int64_t) {
      const ParamStore& params = train.executor().params();
      const auto full = [&](const Bucket& b) {
        std::set<int> groups;
        for (const ParamId id : b.params) groups.insert(params.spec(id).group);
        return groups.size() > 1 && b.grad.bytes() >= static_cast<size_t>(c.parallel.bucket_mb) << 20;
      };
      const auto& all = params.buckets();
      EXPECT_TRUE(std::any_of(all.begin(), all.end() - 1, full)) << l.name();
      EXPECT_GE(std::count_if(all.begin(), all.end(), [](const Bucket& b) { return !b.late; }), 2) << l.name();
    });
  }
}

// Through host memory as a GPU's ranks do it, but on the CPU: sums have the same order, so all bits are the same.
TEST(LayoutEquivalenceStaged, HasTheBitsOfTheHostPath) {
  using enum PrecisionKind;
  for (const Layout& l : {Layout{.tp = 3, .sp = true, .tied = true}, Layout{.dp = 4, .zero1 = true}, Layout{.dp = 2, .precision = bf16_sr},
                          Layout{.pp = 2, .chunks = 2, .precision = mixed}, Layout{.tp = 2, .pp = 2, .dp = 2, .zero1 = true, .kv = 1},
                          Layout{.tp = 4, .pp = 2, .sp = true, .recompute = "full", .tied = true}}) {
    const Config config = l.config();
    const LayoutResult plain = run_layout(config, 2);
    const LayoutResult staged = run_layout(config, 2, {}, {}, [] { return std::make_unique<StagedHostBackend>(); });
    EXPECT_EQ(plain.steps[1].loss, staged.steps[1].loss) << l.name();
    EXPECT_EQ(plain.steps[1].grad_norm, staged.steps[1].grad_norm) << l.name();
    EXPECT_TRUE(plain.weights == staged.weights) << l.name();
  }
}

TEST(Cuda, LayoutsTwiceAreBitIdentical) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU: layouts are not tested on one";
  Layout l{.tp = 2, .pp = 2, .dp = 2, .sp = true, .zero1 = true};
  for (const PrecisionKind p :
       {PrecisionKind::fp32, PrecisionKind::mixed, PrecisionKind::bf16_sr, PrecisionKind::fp8, PrecisionKind::fp8_sr}) {
    l.precision = p;
    const auto run = [&] { return run_layout(l.config(), 2, {}, {}, [] { return cuda_backend(false); }); };
    const LayoutResult a = run(), b = run();
    EXPECT_EQ(a.steps[1].loss, b.steps[1].loss) << name_of(p);
    EXPECT_TRUE(a.weights == b.weights && a.masters == b.masters) << name_of(p);
  }
}

// The table is only worth something if a wrong layout fails it.
TEST(LayoutEquivalenceSelfTest, OtherBatchesAndOtherSeedsAreTold) {
  const LayoutResult one = run_layout(layout_config(), 2);
  Config c = layout_config();
  c.run.seed += 1;
  const LayoutResult other = run_layout(c, 2);
  EXPECT_GT(std::abs(other.steps[0].loss - one.steps[0].loss), 1e-4);
  EXPECT_GT(rms_difference(other.weights.at("layers.0.mlp.down"), one.weights.at("layers.0.mlp.down")), c.optim.lr);
}

// A tensor that stays as it was, or whose gradient lacks a half, is told by its name, and no other is.
TEST(LayoutEquivalenceSelfTest, ATensorThatIsNeverUpdatedOrHasHalfItsGradientIsTold) {
  for (const Layout& l : table()) {
    if (l.precision == PrecisionKind::fp32) continue;
    const LayoutResult& one = reference(l, {});
    const LayoutResult many = run_layout(l.config(), kSteps);
    for (const auto& [name, initial] : one.initial) {
      LayoutResult frozen = many, half = many;
      frozen.masters[name] = initial;
      for (double& g : half.gradients[name]) g /= 2;
      const bool fp8 = precision_of(l.config()).fp8;
      for (const auto& wrong : {wrong_tensors(one, frozen, fp8), wrong_tensors(one, half, fp8)})
        EXPECT_TRUE(wrong.size() == 1 && wrong.contains(name)) << l.name() << ": " << name << ", told are " << wrong.size();
    }
  }
}

TEST(LayoutEquivalenceSelfTest, TheSameLayoutTwiceIsBitIdentical) {
  Layout l{.tp = 2, .pp = 2, .dp = 2, .sp = true, .zero1 = true};
  for (const PrecisionKind p : {PrecisionKind::fp32, PrecisionKind::bf16_sr, PrecisionKind::fp8, PrecisionKind::fp8_sr}) {
    l.precision = p;
    const LayoutResult a = run_layout(l.config(), 2), b = run_layout(l.config(), 2);
    EXPECT_EQ(a.steps[1].loss, b.steps[1].loss) << name_of(p);
    EXPECT_TRUE(a.weights == b.weights && a.masters == b.masters) << name_of(p);
  }
}

}  // namespace
}  // namespace hlat
