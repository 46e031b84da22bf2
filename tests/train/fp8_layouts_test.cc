// What FP8 scales follow from is that of the whole model in every layout: the largest values of a step's operands, and what was counted.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "ops/download.h"
#include "plan/dry_run.h"
#include "support/layout_run.h"
#include "support/precision_rows.h"
#include "train/fp8_counts.h"

namespace hlat {
namespace {

Config fp8_config(const Layout& l) {
  Layout fp8 = l;
  fp8.precision = PrecisionKind::fp8;
  Config c = fp8.config();
  if (l.ffn != Layout{}.ffn) c.model.ffn = l.ffn;
  return c;
}

// The history of each operand after a first step, by name. All ranks that have a layer must agree.
using Histories = std::map<std::string, std::vector<float>>;
Histories histories(const Executor& executor) {
  Histories h;
  const Fp8State& s = executor.params().fp8_state();
  const std::vector<float> all = download_f32(executor.device(), s.history);
  for (const ParamId id : s.params())
    for (const Fp8Role role : {Fp8Role::input, Fp8Role::gradient, Fp8Role::weight}) {
      const auto row = all.begin() + s.unit(id, role) * kFp8History;
      h[fmt::format("{} {}", executor.params().spec(id).name, name_of(role))] = {row, row + kFp8History};
    }
  return h;
}

Histories after_first_step(const Config& config) {
  Histories joined;
  std::mutex mutex;
  run_layout(config, 1, [&](TrainStep& train, int64_t) {
    const Histories own = histories(train.executor());
    const std::lock_guard lock(mutex);
    for (const auto& [name, values] : own) {
      const auto [it, fresh] = joined.try_emplace(name, values);
      EXPECT_EQ(it->second, values) << name << ": ranks differ";
    }
  });
  return joined;
}

float largest(const std::vector<float>& history) { return *std::max_element(history.begin(), history.end()); }

TEST(Fp8Layouts, ReplicasStagesAndMicroBatchesHaveTheHistoryOfOneRank) {
  const Histories one = after_first_step(fp8_config({}));
  ASSERT_EQ(one.size(), 4u * 4 * kFp8Roles);
  for (const auto& [name, values] : one) EXPECT_GT(largest(values), 0) << name;
  for (const Layout& l : {Layout{.dp = 2}, Layout{.dp = 4, .zero1 = true}, Layout{.dp = 2, .zero1 = true, .micro = 2}, Layout{.micro = 4},
                          Layout{.pp = 2}, Layout{.pp = 2, .chunks = 2}, Layout{.pp = 4, .dp = 2, .zero1 = true},
                          Layout{.dp = 2, .recompute = "full"}, Layout{.pp = 2, .dp = 2, .chunks = 2, .recompute = "selective"}})
    EXPECT_TRUE(after_first_step(fp8_config(l)) == one) << l.name();
}

// Sums over tp are rounded in other places, which moves the largest gradient of these models by up to 15 %, in layers of either kind; a
// part of a sum is off by half. With one and two kv heads on four ranks, and with shares of three, three and two query heads, several ranks
// hold the same ones.
constexpr double kLayoutRatio = 0.2;

TEST(Fp8Layouts, TensorParallelRanksHaveTheHistoryOfOneRankButForRounding) {
  Layout wide{.tp = 4, .kv = 1};
  wide.choices.tp_sums = "f32";
  double most = 0;
  for (const Layout& l : {Layout{.tp = 2, .kv = 8}, Layout{.tp = 2}, Layout{.tp = 4, .kv = 1}, Layout{.tp = 4}, Layout{.tp = 4, .kv = 8},
                          Layout{.tp = 4, .sp = true, .kv = 1}, Layout{.tp = 4, .sp = true}, Layout{.tp = 3, .kv = 1, .ffn = 144},
                          Layout{.tp = 3, .sp = true, .kv = 1, .ffn = 144}, Layout{.tp = 8, .kv = 2}, Layout{.tp = 2, .heads = 16},
                          Layout{.tp = 3, .sp = true, .ffn = 144, .heads = 16},
                          Layout{.tp = 4, .pp = 2, .dp = 2, .sp = true, .zero1 = true, .kv = 1}, wide}) {
    const Histories one = after_first_step(fp8_config({.kv = l.kv, .ffn = l.ffn, .heads = l.heads})),
                    many = after_first_step(fp8_config(l));
    ASSERT_EQ(many.size(), one.size());
    double layout_most = 0;
    for (const auto& [name, values] : one) {
      const double ratio = static_cast<double>(largest(many.at(name))) / static_cast<double>(largest(values));
      EXPECT_NEAR(ratio, 1, kLayoutRatio) << l.name() << ": " << name;
      layout_most = std::max(layout_most, std::abs(ratio - 1));
      if (name.ends_with("weight")) {
        EXPECT_EQ(many.at(name), values) << l.name() << ": " << name;
      }
    }
    RecordProperty(l.name(), fmt::format("{:.3f}", layout_most));
    most = std::max(most, layout_most);
  }
  RecordProperty("most", fmt::format("{:.3f}", most));
}

// One sum for each layer and micro-batch, of this rank's tokens times keys and values, as the plan says; under no other policy.
TEST(Fp8Layouts, SumsOverHoldersArePlanned) {
  for (const Layout& l : {Layout{.tp = 4, .kv = 1}, Layout{.tp = 4, .pp = 2, .sp = true, .micro = 2}, Layout{.tp = 3, .kv = 1, .ffn = 144}})
    for (const PrecisionKind precision : {PrecisionKind::fp8, PrecisionKind::mixed}) {
      Config c = fp8_config(l);
      c.train.precision = precision;
      run_layout(c, 1, [&](TrainStep& train, int64_t) {
        const Mesh& mesh = train.executor().mesh();
        const RankPlan plan = dry_run(c, {}, rank_of(mesh.coord(), mesh.shape()));
        const Traffic &used = mesh.along(Axis::kv).traffic(), &planned = plan.traffic[static_cast<size_t>(Axis::kv)].traffic;
        EXPECT_EQ(plan.traffic[static_cast<size_t>(Axis::kv)].axis, "kv");
        for (int k = 0; k < kCommKinds; ++k) {
          const auto kind = static_cast<CommKind>(k);
          EXPECT_EQ(used[kind].calls, planned[kind].calls) << l.name() << ": " << name_of(kind);
          EXPECT_EQ(used[kind].bytes, planned[kind].bytes) << l.name() << ": " << name_of(kind);
        }
        const bool fp8 = precision == PrecisionKind::fp8;
        EXPECT_EQ(used[CommKind::reduce_scatter].calls, fp8 ? c.model.layers / l.pp * (c.train.global_batch / l.micro) : 0) << l.name();
      });
    }
}

// What all ranks count in a step that leaves the masters as they are. One large value in each has made many of the others too small.
Fp8Counts counts(const Layout& l) {
  Config c = fp8_config(l);
  c.optim.lr = 0;
  Fp8Counts sum{};
  std::mutex mutex;
  run_layout(c, 2, [&](TrainStep& train, int64_t step) {
    Executor& executor = train.executor();
    if (step == 1) {
      for (const UpdateUnit& u : executor.params().units())
        if (u.tensors.fp8_seen.defined() && u.map.global(0) == 0) executor.ops().fill(u.tensors.master.rows(0, 1), 1000);
      return executor.fp8().make(Fp8Start::declared);
    }
    const Fp8Counts own = fp8_counts(executor, executor.params().fp8_state().met, {.passes = 1, .updates = 1});
    const std::lock_guard lock(mutex);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += own[i];
  });
  return sum;
}

TEST(Fp8Layouts, RowsThatSeveralRanksHoldAreCountedOnce) {
  for (const int64_t kv : {1, 2}) {
    const Fp8Counts one = counts({.kv = kv});
    for (const Layout& l :
         {Layout{.tp = 4, .kv = kv}, Layout{.tp = 4, .sp = true, .kv = kv}, Layout{.tp = 4, .dp = 2, .zero1 = true, .kv = kv}}) {
      const Fp8Counts many = counts(l);
      for (const Fp8Role role : {Fp8Role::input, Fp8Role::gradient, Fp8Role::weight}) {
        const size_t values = 3 * static_cast<size_t>(role);
        EXPECT_DOUBLE_EQ(many[values], one[values]) << l.name() << ": " << name_of(role);
        if (role != Fp8Role::weight) continue;
        EXPECT_EQ(many[values + 1], one[values + 1]) << l.name() << ": saturated weights";
        EXPECT_EQ(many[values + 2], one[values + 2]) << l.name() << ": lost weights";
        EXPECT_GT(one[values + 2], 0.01 * one[values]);
      }
    }
  }
}

// Copies of optimizer state whose sums another group took may drift (train/shared_weights.h). Nobody's scale follows from them.
TEST(Fp8Layouts, CopiesOfOtherRanksRowsDecideNoScale) {
  int tampered = 0;
  std::mutex mutex;
  run_layout(fp8_config({.tp = 4, .zero1 = true, .kv = 1}), 1, [&](TrainStep& train, int64_t) {
    Executor& executor = train.executor();
    executor.fp8().make(Fp8Start::declared);
    const Histories before = histories(executor);
    const Tensor met = executor.params().fp8_state().met;
    std::vector<std::pair<Tensor, std::vector<std::byte>>> kept;
    for (const UpdateUnit& u : executor.params().units()) {
      if (u.counted || !u.tensors.fp8_seen.defined()) continue;
      EXPECT_TRUE(u.tensors.fp8_seen.as<std::byte>() < met.as<std::byte>() ||
                  u.tensors.fp8_seen.as<std::byte>() >= met.as<std::byte>() + met.bytes())
          << "an update would count " << executor.params().spec(u.param).name;
      const auto* bytes = u.tensors.master.as<std::byte>();
      kept.emplace_back(u.tensors.master, std::vector(bytes, bytes + u.tensors.master.bytes()));
      executor.ops().fill(u.tensors.master, 1000);
      const std::lock_guard lock(mutex);
      ++tampered;
    }
    executor.fp8().make(Fp8Start::declared);
    EXPECT_TRUE(histories(executor) == before);
    for (const auto& [master, bytes] : kept) executor.device().upload(master, bytes.data());
    executor.fp8().make(Fp8Start::declared);
  });
  EXPECT_EQ(tampered, 3 * 4 * 2) << "keys and values of four layers on three ranks";
}

}  // namespace
}  // namespace hlat
