// Sharing of parameters: which lists the model's parameters have on the ranks of a mesh, that late gradients lie in buckets of their
// own, and that every element of the model counts once in global norms.
#include <gtest/gtest.h>

#include <map>

#include "comm/null_comm.h"
#include "model/llama.h"
#include "param/param_store.h"
#include "support/layout_run.h"

namespace hlat {
namespace {

Mesh mesh_of(const Config& config, int rank) {
  return {config, rank, [](const AxisGroup& g) { return std::make_unique<NullComm>(g.rank, g.size, g.name); }};
}

std::vector<ParamSpec> specs_of(const Layout& layout, const MeshCoord& at) {
  const Config c = layout.config();
  return Llama(c, mesh_of(c, rank_of(at, mesh_shape(c.parallel)))).specs();
}

std::string words(const Sharing& s) {
  return fmt::format("{} {} from row {}, place {}{}", name_of(s.axis), s.grad == SharedGrad::partial ? "partial" : "copy", s.first_row,
                     s.place, s.late ? ", late" : "");
}

// The parameters that have a list, by name.
std::map<std::string, std::string> lists_of(const std::vector<ParamSpec>& specs) {
  std::map<std::string, std::string> lists;
  for (const ParamSpec& spec : specs)
    for (const Sharing& s : spec.sharing) {
      std::string& list = lists[spec.name];
      list += (list.empty() ? "" : "; ") + words(s);
    }
  return lists;
}

using Lists = std::map<std::string, std::string>;

// Four tp ranks for two kv heads of 8 rows, tokens split over tp, three stages of 2, 1 and 1 layers, a tied embedding.
TEST(Sharing, OfEveryStageOfALayout) {
  const Layout layout{.tp = 4, .pp = 3, .sp = true, .tied = true};
  EXPECT_EQ(lists_of(specs_of(layout, {.tp = 0, .pp = 0})), (Lists{
                                                                {"embedding", "ends partial from row 0, place 0, late"},
                                                                {"layers.0.attention.qkv", "kv partial from row 16, place 0"},
                                                                {"layers.0.norm1", "tp partial from row 0, place 0"},
                                                                {"layers.0.norm2", "tp partial from row 0, place 0"},
                                                                {"layers.1.attention.qkv", "kv partial from row 16, place 0"},
                                                                {"layers.1.norm1", "tp partial from row 0, place 0"},
                                                                {"layers.1.norm2", "tp partial from row 0, place 0"},
                                                            }));
  EXPECT_EQ(lists_of(specs_of(layout, {.tp = 3, .pp = 1})), (Lists{
                                                                {"layers.2.attention.qkv", "kv partial from row 16, place 1"},
                                                                {"layers.2.norm1", "tp partial from row 0, place 3"},
                                                                {"layers.2.norm2", "tp partial from row 0, place 3"},
                                                            }));
  EXPECT_EQ(lists_of(specs_of(layout, {.tp = 2, .pp = 2})), (Lists{
                                                                {"embedding", "ends partial from row 0, place 1, late"},
                                                                {"head.norm", "tp partial from row 0, place 2"},
                                                                {"layers.3.attention.qkv", "kv partial from row 16, place 0"},
                                                                {"layers.3.norm1", "tp partial from row 0, place 2"},
                                                                {"layers.3.norm2", "tp partial from row 0, place 2"},
                                                            }));
}

TEST(Sharing, FollowsTheLayout) {
  const auto list = [](const Layout& layout, const MeshCoord& at, const std::string& name) { return lists_of(specs_of(layout, at))[name]; };
  EXPECT_EQ(list({.tp = 2}, {.tp = 1}, "layers.0.norm1"), "tp copy from row 0, place 1");  // all ranks see all tokens
  EXPECT_EQ(list({.tp = 2}, {.tp = 1}, "layers.0.attention.qkv"), "");                     // each rank has a kv head of its own
  // Three ranks for two kv heads: the first one has its kv head alone.
  EXPECT_EQ(list({.tp = 3}, {.tp = 0}, "layers.0.attention.qkv"), "");
  EXPECT_EQ(list({.tp = 3}, {.tp = 2}, "layers.0.attention.qkv"), "kv partial from row 16, place 1");
  EXPECT_EQ(list({.pp = 2}, {.pp = 1}, "embedding"), "");
  // A group of one shares nothing.
  for (const Layout& alone : {Layout{.tied = true}, Layout{.dp = 4, .sp = true, .zero1 = true, .tied = true}})
    EXPECT_EQ(lists_of(specs_of(alone, {})), Lists{});
}

TEST(Sharing, LateGradientsLieInBucketsOfTheirOwn) {
  const Layout layout{.tp = 2, .pp = 2, .tied = true};
  for (const int stage : {0, 1}) {
    Memory memory;
    const ParamStore params(specs_of(layout, {.pp = stage}), precision_of(PrecisionKind::fp32), memory, {}, ParamUse::training);
    for (const Bucket& b : params.buckets())
      for (const ParamId id : b.params) {
        EXPECT_EQ(b.late, params.spec(id).name == "embedding") << params.spec(id).name;
        EXPECT_TRUE(!b.late || b.params.size() == 1);
      }
  }
}

// How often the ranks count each element of the model.
using Counts = std::map<std::string, std::vector<int>>;

void add_counts(const ParamStore& params, Counts& counts) {
  for (ParamId id = 0; id < params.size(); ++id)
    counts[params.spec(id).name].resize(static_cast<size_t>(params.spec(id).slice.global.numel()));
  for (size_t i = 0; i < params.units().size(); ++i) {
    const UpdateUnit& u = params.units()[i];
    EXPECT_EQ(u.counted, static_cast<int64_t>(i) < params.counted_units());
    if (!u.counted) continue;
    for (int64_t e = 0; e < u.tensors.grad.numel(); ++e) ++counts[params.spec(u.param).name][static_cast<size_t>(u.map.global(e))];
  }
}

TEST(Sharing, EveryElementCountsOnceInGlobalNorms) {
  for (const Layout& layout : {Layout{}, Layout{.tp = 3, .sp = true}, Layout{.tp = 8, .kv = 1}, Layout{.tp = 7, .kv = 4},
                               Layout{.pp = 3, .tied = true}, Layout{.dp = 3, .zero1 = true}, Layout{.tp = 4, .pp = 2, .tied = true},
                               Layout{.tp = 5, .pp = 2, .dp = 2, .sp = true, .zero1 = true, .chunks = 2, .tied = true}}) {
    const MeshShape shape = mesh_shape(layout.config().parallel);
    Counts counts;
    for (int rank = 0; rank < shape.ranks(); ++rank) {
      const MeshCoord at = coord_of(rank, shape);
      Memory memory;
      const Sharding sharding{.shards = layout.zero1 ? shape.dp : 1, .shard = layout.zero1 ? at.dp : 0};
      add_counts(ParamStore(specs_of(layout, at), precision_of(PrecisionKind::mixed), memory, sharding, ParamUse::training), counts);
    }
    for (const auto& [name, elements] : counts)
      EXPECT_EQ(std::count(elements.begin(), elements.end(), 1), std::ssize(elements)) << name << " of " << layout.name();
  }
}

// Lists that the model has no parameter for: columns split over tp, rows shared along two axes from different rows on.
TEST(Sharing, OfMadeUpParametersDecidesWhatCounts) {
  const Config config = Layout{.tp = 4, .pp = 2}.config();
  const auto counted = [&](const MeshCoord& at, bool columns) {
    const Mesh mesh = mesh_of(config, rank_of(at, mesh_shape(config.parallel)));
    ParamBuilder builder(mesh, false);
    const ParamId id = builder.add_split("made up", {6, 10}, columns ? 1 : 0, {{.global = 1, .count = 5}}, 1);
    builder.share(id, Axis::kv, SharedGrad::copy, 2);
    builder.share(id, Axis::pp, SharedGrad::copy, 4);
    const ParamSpec spec = builder.take().front();
    EXPECT_FALSE(spec.late()) << "a copy is not summed";
    return spec.counted();
  };
  EXPECT_EQ(counted({.tp = 0, .pp = 0}, false), 50);
  EXPECT_EQ(counted({.tp = 1, .pp = 0}, false), 20);
  EXPECT_EQ(counted({.tp = 2, .pp = 1}, false), 40);
  EXPECT_EQ(counted({.tp = 3, .pp = 1}, false), 20);
  EXPECT_EQ(counted({.tp = 0, .pp = 0}, true), 30);
  EXPECT_EQ(counted({.tp = 3, .pp = 0}, true), 10);
}

}  // namespace
}  // namespace hlat
