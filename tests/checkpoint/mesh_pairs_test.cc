// Save on mesh A, load on mesh B. Each row trains a tiny model on A, saves it inside a stage of the data and goes on; then B loads it:
// weights, masters and moments are exactly A's, and so is the position in the data. The next steps, which cross into another stage, have
// A's losses: on the same layout bit by bit, on another one within the tolerances of the layout table (support/layout_tolerance.h). Into
// another precision policy the tensors are exactly those that the rules of conversion make, and losses agree as bf16 does.
#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "checkpoint/checkpoint_folder.h"
#include "support/layout_run.h"
#include "support/layout_tolerance.h"
#include "support/precision_rows.h"
#include "support/saved_run.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

constexpr int64_t kMeshStep = 3, kMore = 2;

struct Pair {
  Layout from, to;
  std::string name() const { return from.name() + "__" + to.name(); }
  // Between policies with FP8 and without: the shapes of the former for both.
  bool fp8() const { return precision_of(from.config()).fp8 || precision_of(to.config()).fp8; }
};

Config config_of(const Layout& layout, bool fp8) {
  Config c = layout.config();
  if (fp8) take_fp8_shapes(c);
  return c;
}
void PrintTo(const Pair& p, std::ostream* out) { *out << p.name(); }

// A layout that was trained, saved on the way, and trained on; once for all rows that begin with it.
struct SavedMesh {
  test::TempDir dir;
  TrainedPart run;
  explicit SavedMesh(const Config& c) : run(run_and_save(c, dir.path(), kMeshStep, kMore)) {}
};

const SavedMesh& saved(const Layout& layout, bool fp8) {
  static std::map<std::pair<std::string, bool>, std::unique_ptr<SavedMesh>> all;
  std::unique_ptr<SavedMesh>& entry = all[{layout.name(), fp8}];
  if (entry == nullptr) entry = std::make_unique<SavedMesh>(config_of(layout, fp8));
  return *entry;
}

void expect_same_bits(const TrainedPart& a, const TrainedPart& b) {
  ASSERT_EQ(a.steps.size(), b.steps.size());
  for (size_t i = 0; i < a.steps.size(); ++i) {
    EXPECT_EQ(a.steps[i].loss, b.steps[i].loss);
    EXPECT_EQ(a.steps[i].grad_norm, b.steps[i].grad_norm);
    EXPECT_EQ(a.steps[i].param_norm, b.steps[i].param_norm);
  }
  expect_equal_state(a.end.tensors, b.end.tensors, "after the last step");
}

void expect_like(const TrainedPart& a, const TrainedPart& b, bool fp32, bool fp8, double lr) {
  expect_near(b.steps, a.steps, fp32, fp8);
  for (const auto& [key, end] : a.end.tensors) {
    const std::string kind = key.substr(0, key.find(' ')), name = key.substr(key.find(' ') + 1);
    if (kind == "weight") {
      EXPECT_LE(rms_difference(b.end.tensors.at(key), end), most_rms_difference(fp32, lr)) << name;
    }
    const bool updated = kind == "master" || (kind == "weight" && !a.end.tensors.contains("master " + name));
    if (updated) {
      EXPECT_LE(relative_distance(b.end.tensors.at(key), end, a.begin.tensors.at(key)), fp8 ? kFp8MovementNoise : kMovementNoise) << name;
    }
  }
}

class MeshPairs : public ::testing::TestWithParam<Pair> {};

TEST_P(MeshPairs, LoadsExactlyAndTrainsOn) {
  const auto& [from, to] = GetParam();
  const bool fp8 = GetParam().fp8();
  const SavedMesh& a = saved(from, fp8);
  Config config = config_of(to, fp8);
  config.optim.lr = from.config().optim.lr;
  const LoadedPart b = load_and_run(config, checkpoint_path(a.dir.path(), kMeshStep), kMore);

  expect_equal_state(b.begin.tensors, converted(a.run.begin.tensors, to.precision, LoadWhat::training), "loaded");
  EXPECT_TRUE(b.begin.data == a.run.begin.data) << "the position in the data";
  EXPECT_TRUE(b.end.data == a.run.end.data) << "the position after the last step";
  EXPECT_EQ(b.begin.data.segments.size(), 2u) << "saved inside the second stage of the data";
  EXPECT_EQ(b.end.data.segments.size(), 3u) << "trained into the third";
  if (from.name() == to.name())
    expect_same_bits(a.run, b);
  else if (from.precision == to.precision)
    expect_like(a.run, b, from.precision == PrecisionKind::fp32, fp8, config.optim.lr);
  else
    for (size_t i = 0; i < b.steps.size(); ++i) EXPECT_NEAR(b.steps[i].loss, a.run.steps[i].loss, 2e-2 * a.run.steps[i].loss);
}

// NOLINTBEGIN(bugprone-*)
std::vector<Pair> table() {
  using enum PrecisionKind;
  const Layout all_axes{.tp = 2, .pp = 2, .dp = 2, .sp = true, .zero1 = true};
  std::vector<Pair> t = {
      {{}, {}},
      // Tensor parallelism, also above the 2 kv heads, and sequence parallelism.
      {{}, {.tp = 2}},
      {{.tp = 2}, {}},
      {{.tp = 2}, {.tp = 4}},
      {{.tp = 4}, {.tp = 2}},
      {{.tp = 8, .kv = 1}, {.tp = 3, .kv = 1}},
      {{.tp = 3}, {.tp = 5}},
      {{.tp = 5}, {.tp = 5}},
      {{.tp = 2, .sp = true}, {.tp = 2}},
      {{.tp = 2}, {.tp = 4, .sp = true}},
      {{.tp = 3, .sp = true}, {.tp = 3, .sp = true}},
      {{.tp = 4, .vocab = 97}, {.tp = 3, .dp = 2, .vocab = 97}},
      // Data parallelism, ZeRO-1 on and off.
      {{.dp = 2}, {.dp = 4}},
      {{.dp = 4}, {}},
      {{}, {.dp = 8, .zero1 = true}},
      {{.dp = 2, .zero1 = true}, {.dp = 2}},
      {{.dp = 2}, {.dp = 2, .zero1 = true}},
      {{.dp = 2}, {.dp = 2}},
      {{.dp = 4, .zero1 = true}, {.dp = 2, .zero1 = true}},
      {{.dp = 4, .zero1 = true}, {.dp = 4, .zero1 = true}},
      {{.dp = 8, .zero1 = true}, {.dp = 4}},
      // Pipelines: uneven cuts, chunks 2 to 1 and back, tied.
      {{.pp = 2}, {}},
      {{}, {.pp = 4}},
      {{.pp = 2}, {.pp = 3}},
      {{.pp = 2, .cuts = {1}}, {.pp = 2, .cuts = {3}}},
      {{.pp = 3, .cuts = {1, 2}}, {.pp = 2}},
      {{.pp = 3, .layers = 7}, {.pp = 2, .chunks = 3, .layers = 7}},
      {{.pp = 2, .chunks = 2}, {.pp = 2}},
      {{.pp = 2}, {.pp = 2, .chunks = 2}},
      {{.pp = 2, .chunks = 2}, {.pp = 2, .chunks = 2}},
      {{.pp = 4, .chunks = 2, .layers = 8}, {.pp = 2, .layers = 8}},
      {{.pp = 2, .tied = true}, {.tied = true}},
      {{.tied = true}, {.pp = 4, .tied = true}},
      {{.pp = 2, .tied = true}, {.pp = 2, .tied = true}},
      {{.pp = 4, .tied = true}, {.pp = 2, .chunks = 2, .tied = true}},
      {{.tp = 2, .pp = 2, .tied = true}, {.tp = 4, .sp = true, .tied = true}},
      // Other micro-batches, buckets and recomputation.
      {{.dp = 2}, {.dp = 2, .micro = 2}},
      {{.dp = 2, .micro = 4}, {.dp = 4, .zero1 = true}},
      {{.ffn = 840}, {.ffn = 840, .bucket_mb = 32}},
      {{.dp = 2, .ffn = 840, .bucket_mb = 32}, {.dp = 4, .zero1 = true, .ffn = 840}},
      {{.dp = 2, .zero1 = true, .ffn = 840}, {.tp = 2, .dp = 2, .zero1 = true, .ffn = 840, .bucket_mb = 2}},
      {{.tp = 2, .recompute = "full"}, {.tp = 2}},
      // Several axes.
      {all_axes, {}},
      {{}, all_axes},
      {all_axes, all_axes},
      {{.tp = 2, .pp = 2, .dp = 2, .sp = true, .zero1 = true, .tied = true}, {.tp = 4, .dp = 2, .tied = true}},
      {{.tp = 3, .pp = 2, .dp = 2, .zero1 = true, .kv = 8}, {.tp = 2, .pp = 4, .kv = 8}},
      {{.tp = 4, .dp = 2, .sp = true, .zero1 = true}, {.pp = 4, .dp = 2}},
  };
  // Every precision policy. In mixed_sr weights are no function of the masters: they are what was saved, or the same layout has other bits.
  const auto in = [](Layout l, PrecisionKind p) {
    l.precision = p;
    return l;
  };
  const Layout spread{.tp = 2, .dp = 2, .zero1 = true}, staged{.pp = 2, .dp = 2, .chunks = 2};
  for (const PrecisionKind p : {mixed, mixed_sr, bf16_sr, bf16, fp8, fp8_sr}) {
    t.push_back({in(spread, p), in(spread, p)});
    t.push_back({in(spread, p), in(staged, p)});
  }
  for (const auto& [from, to] : {std::pair{mixed, fp32},
                                 {fp32, mixed},
                                 {fp32, bf16_sr},
                                 {mixed_sr, bf16_sr},
                                 {bf16, mixed_sr},
                                 {bf16_sr, fp32},
                                 {mixed, fp8},
                                 {fp8, mixed},
                                 {fp8, fp8_sr},
                                 {fp8_sr, fp8},
                                 {fp8, bf16_sr}})
    t.push_back({in(spread, from), in(staged, to)});
  return t;
}
// NOLINTEND(bugprone-*)

INSTANTIATE_TEST_SUITE_P(Table, MeshPairs, ::testing::ValuesIn(table()),
                         [](const ::testing::TestParamInfo<Pair>& row) { return row.param.name(); });

}  // namespace
}  // namespace hlat
