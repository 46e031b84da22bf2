// The checks of a model one by one: each tells a model that is wrong in its way from one that is not.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <numeric>
#include <tuple>

#include "backend/cpu/cpu_backend.h"
#include "base/rng.h"
#include "comm/self_comm.h"
#include "fault/damage.h"
#include "nn/planted.h"
#include "ops/download.h"
#include "selfcheck/data_check.h"
#include "selfcheck/gradient_check.h"
#include "selfcheck/shrunk.h"
#include "selfcheck/start_checks.h"
#include "selfcheck/step_checks.h"
#include "support/layout_run.h"
#include "support/temp_dir.h"
#include "support/thread_comm.h"

namespace hlat {
namespace {

// What `body` says about a model of the layout on rank 0.
ModelVerdict on_ranks_of(const Layout& layout, const std::function<ModelVerdict(const SelfCheckRun&, CheckModel&)>& body) {
  const test::TempDir dir;
  Config config = layout.config();
  config.run.dir = dir.path();
  config.parallel.health_every = 0;
  ModelVerdict verdict;
  run_thread_ranks(mesh_shape(config.parallel).ranks(), [&](Comm& world) {
    CpuBackend backend({.threads = 1, .isa = "auto"});
    const SelfCheckRun run{
        .given = config, .config = config, .backend = backend, .world = world, .local_ranks = world.size(), .on_host = {0}};
    CheckModel model(config, backend, world, world.size(), true);
    model.start();
    const ModelVerdict own = body(run, model);
    if (world.rank() == 0) verdict = own;
  });
  return verdict;
}

Tensor weight_of(CheckModel& model, const std::string& name) {
  const std::optional<ParamId> id = fault::find_tensor(model.params(), name);
  return id ? model.params().weight(*id).viewed({model.params().weight(*id).numel()}) : Tensor{};
}

void expect_failed(const ModelVerdict& verdict, const std::vector<std::string>& words) {
  EXPECT_EQ(verdict.state, CheckState::failed) << verdict.words;
  for (const std::string& w : words) EXPECT_NE(verdict.words.find(w), std::string::npos) << verdict.words;
}

TEST(CheckParts, InitialValuesThatAreNotTheDeclaredOnesAreTold) {
  for (const char* name : {"layers.2.attention.output", "layers.1.norm2", "embedding"}) {
    const ModelVerdict verdict = on_ranks_of({.tp = 2}, [&](const SelfCheckRun& run, CheckModel& model) {
      fault::multiply(model.device(), weight_of(model, name), 1.1);
      return check_init(run, model);
    });
    expect_failed(verdict, {name});
  }
}

TEST(CheckParts, DeclaredDeviations) {
  ModelConfig m = layout_config().model;
  m.init_std = 0.08;
  EXPECT_EQ(declared_std(m, "layers.0.norm1"), 0);
  EXPECT_EQ(declared_std(m, "head.output"), 0.08);
  EXPECT_DOUBLE_EQ(declared_std(m, "layers.3.mlp.down"), 0.08 / std::sqrt(8.0));
  m.scaled_init = false;
  EXPECT_EQ(declared_std(m, "layers.3.mlp.down"), 0.08);
}

TEST(CheckParts, AFirstLossBelowLogVIsTold) {
  const Config c = layout_config();
  const LossRange range = first_losses(c);
  EXPECT_LT(range.low, std::log(101.0));
  EXPECT_GT(range.high, std::log(101.0));
  EXPECT_LT(range.high, 1.5 * std::log(101.0));
  const ModelVerdict low =
      on_ranks_of({}, [](const SelfCheckRun& run, CheckModel&) { return check_first_loss(run, 0.8 * std::log(101.0)); });
  expect_failed(low, {"log V is 4.6151"});
}

// Attention in plain f32 whose queries of the second tile of 64 see one key too many, or whose last query of the first does.
class LeakOfTiles final : public PlantedAttention, public PlantedPasses {
 public:
  LeakOfTiles(Device& device, bool of_first) : device_(device), of_first_(of_first) {}
  const PlantedAttention* attention(int64_t layer) const override { return layer == 0 ? this : nullptr; }
  void forward(Tensor out, Tensor lse, Tensor qkv, const AttentionShape& s) const override {
    const std::vector<float> in = download_f32(device_, qkv);
    std::vector<float> y(static_cast<size_t>(out.numel())), stats(static_cast<size_t>(lse.numel()));
    const auto e = static_cast<size_t>(s.head_dim), row = static_cast<size_t>(s.qkv_width());
    for (int64_t i = 0; i < s.batch * s.heads * s.seq; ++i) {
      const int64_t t = i % s.seq, h = i / s.seq % s.heads, b = i / s.seq / s.heads, kv = h / (s.heads / s.kv_heads);
      const auto at = [&](int64_t token, int64_t block) {
        return &in[static_cast<size_t>(b * s.seq + token) * row + static_cast<size_t>(block) * e];
      };
      std::vector<double> p;
      double sum = 0;
      for (int64_t j = 0; j < keys(t, s.seq); ++j) {
        p.push_back(std::exp(std::inner_product(at(t, h), at(t, h) + e, at(j, s.heads + kv), 0.0) / std::sqrt(static_cast<double>(e))));
        sum += p.back();
      }
      stats[static_cast<size_t>((b * s.heads + h) * s.seq + t)] = static_cast<float>(std::log(sum));
      for (size_t j = 0; j < p.size(); ++j)
        for (size_t c = 0; c < e; ++c)
          y[static_cast<size_t>((b * s.seq + t) * s.heads + h) * e + c] +=
              static_cast<float>(p[j] / sum) * at(static_cast<int64_t>(j), s.heads + s.kv_heads + kv)[c];
    }
    device_.upload(out, y.data());
    device_.upload(lse, stats.data());
  }
  void backward(Tensor dqkv, Tensor /*dout*/, Tensor /*qkv*/, const AttentionShape&) const override {
    device_.upload(dqkv, std::vector<float>(static_cast<size_t>(dqkv.numel())).data());  // nothing here asks for it
  }

 private:
  static constexpr int64_t kTile = 64;
  int64_t keys(int64_t t, int64_t seq) const {
    const bool sees_more = of_first_ ? t == kTile - 1 : t >= kTile && t < 2 * kTile;
    return std::min(sees_more ? t + 2 : t + 1, seq);
  }
  Device& device_;
  bool of_first_;
};

// In a copy of a model whose rows are longer than a tile.
TEST(CheckParts, ALeakAcrossTilesOfAttentionIsTold) {
  Config large = layout_config();
  large.train.seq_len = 1024;
  const Config config = shrunk(large);
  CpuBackend backend({.threads = 1, .isa = "auto"});
  SelfComm world;
  CheckModel model(config, backend, world, 1, false);
  model.start();
  const SelfCheckRun run{.given = config, .config = config, .backend = backend, .world = world, .on_host = {0}};
  EXPECT_EQ(check_leak(run, model).state, CheckState::ok);
  for (const bool of_first : {false, true}) {
    const LeakOfTiles leak(model.device(), of_first);
    model.executor().plant(&leak);
    expect_failed(check_leak(run, model), {of_first ? "positions 0 to 63 changes" : "positions 0 to 105 changes"});
  }
}

TEST(CheckParts, AReplicaThatIsApartIsTold) {
  const ModelVerdict verdict = on_ranks_of({.tp = 2, .dp = 2}, [](const SelfCheckRun& run, CheckModel& model) {
    model.step(1);
    if (run.rank() == 3) fault::flip_bit(model.device(), weight_of(model, "layers.1.mlp.gate_up"), 5);
    return check_replicas(run, model, 1);
  });
  expect_failed(verdict, {"after 1 steps the weight layers.1.mlp.gate_up differs along dp between rank 1 (tp 1, pp 0, dp 0) and rank 3"});
}

TEST(CheckParts, ACopyOfASharedWeightThatIsApartIsTold) {
  const auto shared = [](const Layout& layout, int rank, const std::string& name) {
    return on_ranks_of(layout, [&](const SelfCheckRun& run, CheckModel& model) {
      const FirstStep first = take_first_step(model);
      if (run.rank() == rank) fault::flip_bit(model.device(), weight_of(model, name), 1);
      return check_shared(run, model, first, "");
    });
  };
  EXPECT_EQ(shared({.tp = 2, .pp = 2, .tied = true}, 9, "").state, CheckState::ok);
  expect_failed(shared({.pp = 2, .tied = true}, 1, "embedding"), {"the weight embedding differs along ends between rank 0"});
  expect_failed(shared({.tp = 2}, 1, "layers.0.norm1"), {"the weight layers.0.norm1 differs along tp"});
}

// Rows of the embedding that are all the same: whatever a position reads, it sees the same.
TEST(CheckParts, ATokenThatItsOwnPositionDoesNotSeeIsTold) {
  PrecisionConfig rounded;
  rounded.loss = "bf16";
  for (const Layout& layout :
       {Layout{}, Layout{.precision = PrecisionKind::bf16_sr, .choices = rounded}, Layout{.tp = 2, .pp = 2, .dp = 2}})
    expect_failed(on_ranks_of(layout,
                              [](const SelfCheckRun& run, CheckModel& model) {
                                const Tensor table = weight_of(model, "embedding");
                                if (table.defined()) model.device().upload(table, std::vector<std::byte>(table.bytes()).data());
                                return check_leak(run, model);
                              }),
                  {"the loss of position 0 does not change with its own token"});
}

// What the optimizer updates, or the weights that are copies of it, as if the first step had left them.
TEST(CheckParts, ASharedWeightThatStandsStillIsTold) {
  const auto still = [](const Layout& layout, const std::string& name, bool weight, bool updated) {
    return on_ranks_of(layout, [&](const SelfCheckRun& run, CheckModel& model) {
      FirstStep first = take_first_step(model);
      for (size_t i = 0; i < first.before.size(); ++i)
        if (updated && first.before[i].tensor == name) first.after[i] = first.before[i];
      for (size_t i = 0; i < first.start_bits.size(); ++i)
        if (weight && first.start_bits[i].what == "the weight " + name) first.end_bits[i] = first.start_bits[i];
      return check_shared(run, model, first, "");
    });
  };
  using enum PrecisionKind;
  for (const auto& [weight, updated] : {std::pair{true, true}, {true, false}, {false, true}}) {
    for (const PrecisionKind precision : {fp32, mixed, bf16_sr})
      expect_failed(still({.tied = true, .precision = precision}, "embedding", weight, updated), {"the weight embedding has not moved"});
    expect_failed(still({.tp = 2}, "layers.0.norm1", weight, updated), {"the weight layers.0.norm1 has not moved"});
  }
  expect_failed(still({.tp = 2, .precision = mixed}, "layers.0.norm1", false, true), {"the weight layers.0.norm1 has not moved"});
  EXPECT_EQ(still({.tp = 2, .precision = mixed}, "layers.0.norm1", true, false).state, CheckState::ok)
      << "bf16 near one has steps of 0.004";
}

TEST(CheckParts, OtherGradientsWithRecomputationAreTold) {
  const ModelVerdict verdict = on_ranks_of({.dp = 2}, [](const SelfCheckRun& run, CheckModel& model) {
    FirstStep first = take_first_step(model);
    if (run.rank() == 1) first.gradient_bits.front().hash ^= 1;
    return check_recompute(run, first);
  });
  expect_failed(verdict, {"train.recompute none and full", "the gradient of"});
}

TEST(CheckParts, AnUpdateOfAnotherSizeIsTold) {
  using enum PrecisionKind;
  for (const auto& [precision, factor, words] :
       {std::tuple{fp32, 3.0f, "(3.0"}, {fp32, NAN, "(nan"}, {mixed, 1.04f, "(1.04"}, {bf16_sr, 1.2f, "(1.2"}})
    for (const std::string name : {"layers.0.mlp.down", "layers.2.norm1"}) {
      if (precision == bf16_sr && name == "layers.2.norm1") continue;  // near one a step of bf16 is an update
      const ModelVerdict verdict =
          on_ranks_of({.dp = 2, .zero1 = true, .precision = precision}, [&](const SelfCheckRun& run, CheckModel& model) {
            FirstStep first = take_first_step(model);
            for (size_t i = 0; i < first.after.size(); ++i)
              if (first.after[i].tensor == name)
                for (size_t e = 0; e < first.after[i].values.size(); ++e)
                  first.after[i].values[e] = first.before[i].values[e] + factor * (first.after[i].values[e] - first.before[i].values[e]);
            return check_updates(run, model, first);
          });
      expect_failed(verdict, {name + " " + words});
    }
}

// One tensor of n elements, summed over 16 replicas of which one counts `share` times, with noise of 0.2 of its size.
GradientError with_noise(size_t n, double share, const GradientLimit& limit) {
  constexpr size_t kReplicas = 16, kOther = 5;
  RandomStream stream({.seed = 3, .stream = hash_name("gradients"), .purpose = Noise::data});
  const auto value = [&] { return static_cast<float>(2 * stream.next_unit() - 1); };
  OneRankStep one;
  LocalPart own{.tensor = "layers.0.mlp.down", .map = {}, .values = std::vector<float>(n), .whole = static_cast<int64_t>(n)};
  for (size_t d = 0; d < kReplicas; ++d) {
    std::vector<float>& replica = one.replicas.emplace_back()[own.tensor];
    for (size_t i = 0; i < n; ++i) {
      replica.push_back(value());
      own.values[i] += static_cast<float>(d == kOther ? share : 1) * replica.back() / kReplicas;
    }
  }
  for (float& v : own.values) v += 0.05f * value();
  const Config config = layout_config();
  CpuBackend backend({.threads = 1, .isa = "auto"});
  SelfComm world;
  return gradient_errors({.given = config, .config = config, .backend = backend, .world = world, .on_host = {0}}, {own}, one, limit)
      .front();
}

TEST(CheckParts, NoiseWithinTheLimitHidesNoShare) {
  const GradientLimit distance{.distance = 0.35}, shares{.distance = 0.35, .shares = true};
  for (const double share : {1.0, 0.0, 1.5}) {
    const GradientError e = with_noise(4096, share, shares);
    EXPECT_LT(e.distance, 0.35);
    EXPECT_EQ(e.wrong, share != 1) << share;
    for (size_t d = 0; d < 16; ++d) EXPECT_NEAR(e.shares[d], d == 5 ? share : 1, 0.1);
    EXPECT_FALSE(with_noise(4096, share, distance).wrong) << "the distance alone does not tell";
  }
}

TEST(CheckParts, SharesOfFewElementsAreOffByChance) {
  const GradientError e = with_noise(24, 1, {.distance = 0.35, .shares = true});
  EXPECT_TRUE(std::any_of(e.shares.begin(), e.shares.end(), [](double share) { return std::abs(share - 1) > 0.2; }));
  EXPECT_FALSE(e.wrong);
}

TEST(CheckParts, RowsOfRanks) {
  const auto rows = [](const std::vector<std::array<uint64_t, 3>>& list, int rank) {
    std::vector<RowHash> all;
    for (const auto& [step, row, hash] : list)
      all.push_back({.step = static_cast<int64_t>(step), .row = static_cast<int64_t>(row), .hash = hash, .rank = rank});
    return all;
  };
  const auto one = rows({{1, 0, 7}, {1, 1, 8}, {2, 0, 9}, {2, 1, 10}}, 0);
  EXPECT_TRUE(repeated_rows(one).empty());
  auto twice = one;
  for (const RowHash& r : rows({{1, 0, 7}}, 1)) twice.push_back(r);
  EXPECT_TRUE(repeated_rows(twice).empty()) << "the last stage reads the rows of the first";
  EXPECT_EQ(repeated_rows(rows({{1, 0, 7}, {1, 1, 7}, {2, 0, 7}}, 0)).size(), 2u);
  const ModelVerdict same = on_ranks_of({}, [&](const SelfCheckRun& run, CheckModel&) {
    EXPECT_EQ(other_rows(run, one, one), "");
    EXPECT_EQ(other_rows(run, rows({{1, 0, 7}, {2, 0, 8}}, 0), one),
              "1 of 2 rows are not those that one rank alone reads, the first is row 0 of step 2 on the rank");
    return ModelVerdict::ok("");
  });
}

// Rows of a step: each a function of its number alone, and only the asked tokens are others.
TEST(CheckParts, KnownRowsChangeWhereTheyAreAskedTo) {
  const Config c = layout_config();
  Batch all(4, c.train.seq_len), second(2, c.train.seq_len), changed(4, c.train.seq_len);
  KnownRows rows(c, 0), from_two(c, 2);
  rows.read(0, all);
  from_two.read(0, second);
  EXPECT_TRUE(std::equal(second.inputs.begin(), second.inputs.end(), all.inputs.begin() + 2 * c.train.seq_len));
  rows.others_from = 5;
  rows.losses = 5;
  rows.read(0, changed);
  for (int64_t i = 0; i < 4 * c.train.seq_len; ++i) {
    const auto at = static_cast<size_t>(i);
    EXPECT_EQ(changed.inputs[at] != all.inputs[at], i % c.train.seq_len >= 5);
    EXPECT_EQ(changed.targets[at] == -1, i % c.train.seq_len >= 5);
    EXPECT_LT(changed.inputs[at], c.model.vocab);
  }
}

}  // namespace
}  // namespace hlat
