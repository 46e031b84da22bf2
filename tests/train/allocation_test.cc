// Every argument of every op of a step lies in a labelled allocation, and a dry run names the arguments as the real run does:
// what a recorder of the step will rely on.
#include <gtest/gtest.h>

#include <set>

#include "support/real_run.h"
#include "support/ref_run.h"

namespace hlat {
namespace {

// A backend that also writes down the allocations of its arguments, in the order of the calls.
template <class Base>
class Noting : public Base {
 public:
  using Base::Base;
  std::vector<AllocationId> ids;

 protected:
// clang-format off
#define NOTED(op, parameters, tensors, arguments) \
  void op parameters override { note tensors; ++inside_; Base::op arguments; --inside_; }
  NOTED(do_embed, (Tensor y, Tensor i, Tensor table, int64_t first), ({y, i, table}), (y, i, table, first))
  NOTED(do_embed_bwd, (Tensor dtable, Tensor i, Tensor dy, int64_t first, Tensor scratch),
         ({dtable, i, dy}), (dtable, i, dy, first, scratch))
  NOTED(do_matmul, (Tensor c, Tensor a, Tensor b, const MatmulShape& s, Tensor scratch), ({c, a, b}), (c, a, b, s, scratch))
  NOTED(do_rmsnorm, (Tensor y, Tensor rstd, Tensor x, Tensor w, double eps), ({y, rstd, x, w}), (y, rstd, x, w, eps))
  NOTED(do_add_rmsnorm, (Tensor sum, Tensor y, Tensor rstd, Tensor x, Tensor delta, Tensor w, double eps),
         ({sum, y, rstd, x, delta, w}), (sum, y, rstd, x, delta, w, eps))
  NOTED(do_rmsnorm_bwd, (Tensor dx, Tensor dw, Tensor dy, Tensor x, Tensor w, Tensor rstd, Ops::NormBwdArgs args, Tensor scratch),
         ({dx, dw, dy, x, w, rstd}), (dx, dw, dy, x, w, rstd, args, scratch))
  NOTED(do_rope_table, (Tensor table, const RopeFrequencies& frequencies), ({table}), (table, frequencies))
  NOTED(do_rope, (Tensor qkv, Tensor table, AttentionShape s, int sign), ({qkv, table}), (qkv, table, s, sign))
  NOTED(do_attention, (Tensor out, Tensor lse, Tensor qkv, AttentionShape s, Tensor scratch),
         ({out, lse, qkv}), (out, lse, qkv, s, scratch))
  NOTED(do_attention_bwd, (Tensor dqkv, Tensor dout, Tensor out, Tensor lse, Tensor qkv, AttentionShape s, Tensor scratch),
         ({dqkv, dout, out, lse, qkv}), (dqkv, dout, out, lse, qkv, s, scratch))
  NOTED(do_swiglu, (Tensor y, Tensor gu), ({y, gu}), (y, gu))
  NOTED(do_swiglu_bwd, (Tensor dgu, Tensor dy, Tensor gu), ({dgu, dy, gu}), (dgu, dy, gu))
  NOTED(do_add, (Tensor y, Tensor a, Tensor b), ({y, a, b}), (y, a, b))
  NOTED(do_cross_entropy_partial, (Tensor stats, Tensor logits, Tensor targets, int64_t first),
         ({stats, logits, targets}), (stats, logits, targets, first))
  NOTED(do_cross_entropy_merge, (Tensor stats, Tensor parts), ({stats, parts}), (stats, parts))
  NOTED(do_cross_entropy_finish, (Tensor loss_sum, Tensor stats, Tensor targets), ({loss_sum, stats, targets}), (loss_sum, stats, targets))
  NOTED(do_cross_entropy_bwd, (Tensor dlogits, Tensor logits, Tensor stats, Tensor targets, int64_t first, double scale),
         ({dlogits, logits, stats, targets}), (dlogits, logits, stats, targets, first, scale))
  NOTED(do_cast, (Tensor dst, Tensor src, Rounding rounding, NoiseKey key, const ElementMap& map),
         ({dst, src}), (dst, src, rounding, key, map))
  NOTED(do_fill, (Tensor t, double value), ({t}), (t, value))
  NOTED(do_fill_normal, (Tensor t, double std, NoiseKey key, const ElementMap& map), ({t}), (t, std, key, map))
  NOTED(do_sum, (Tensor out, Tensor x, Tensor scratch), ({out, x}), (out, x, scratch))
  NOTED(do_clip_scale, (Tensor scale, Tensor sq, double max_norm), ({scale, sq}), (scale, sq, max_norm))
  NOTED(do_checksum, (Tensor out, Tensor x, Tensor scratch), ({out, x}), (out, x, scratch))
#undef NOTED
  // clang-format on
  void do_sum_squares(Tensor out, std::span<const Tensor> x, Tensor scratch) override {
    note({out});
    for (const Tensor& t : x) note({t});
    Base::do_sum_squares(out, x, scratch);
  }
  void do_adamw(std::span<const AdamwItem> items, Tensor scratch) override {
    for (const auto& [t, s] : items) note({t.weight, t.m, t.v, t.grad, t.scale, t.step, t.weight_sq});
    Base::do_adamw(items, scratch);
  }

 private:
  void note(std::initializer_list<Tensor> tensors) {
    if (inside_ > 0) return;  // an op that a body calls
    for (const Tensor& t : tensors) ids.push_back(t.allocation);
  }
  int inside_ = 0;
};

TEST(Allocations, ADryRunNamesTheArgumentsOfTheRun) {
  for (const Recompute& recompute : {Recompute{RecomputeKind::none, 0}, Recompute{RecomputeKind::full, 0}}) {
    Config config = with_one_rank(tiny_config());
    config.train.recompute = recompute;
    const Mesh mesh = one_rank(config);

    Memory measured;
    NullDevice nothing;
    Noting<NullOps> null(measured[Purpose::temp]);
    Executor dry(config, f64_precision(), mesh, measured, null, null, nothing, ParamUse::training);
    null.ids.clear();
    TrainStep(dry).run(1, 0, nullptr);

    CpuDevice device;
    PlannedMemory planned(device, measured.high_water());
    Noting<RefOps> ref(planned.memory()[Purpose::temp]);
    Executor executor(config, f64_precision(), mesh, planned.memory(), ref, ref, device, ParamUse::training);
    TrainStep train(executor);
    RandomRows rows(config);
    const auto step = [&](int64_t number) {
      ref.ids.clear();
      train.run(number, 1e-3, &rows);
      return ref.ids;
    };
    const std::vector<AllocationId> first = step(1);
    EXPECT_EQ(first, null.ids) << recompute.str();
    EXPECT_EQ(step(2), first) << "the next step uses the same places";
    std::set<std::string> labels;
    for (const AllocationId id : first) {
      ASSERT_NE(id, 0u) << "an argument that lies in no region";
      EXPECT_EQ(measured.allocation(id).label, planned.memory().allocation(id).label);
      labels.insert(measured.allocation(id).label);
    }
    for (const char* label :
         {"token ids", "bucket 0", "bucket 0 gradient", "first moments", "block 0 qkv", "logits", "learning rate and step"})
      EXPECT_TRUE(labels.contains(label)) << label;
  }
}

}  // namespace
}  // namespace hlat
