// Sums of gradients on ranks that are threads, of made-up parameters with every kind of sharing. Gradients are small whole numbers, so
// sums are exact; what they must be is worked out from coordinates alone.
#include "train/grad_sync.h"

#include <gtest/gtest.h>

#include "ops/ref_ops.h"
#include "support/host_memory.h"
#include "support/layout_run.h"
#include "support/thread_comm.h"

namespace hlat {
namespace {

constexpr int kEarly = 1, kRows = 2, kLate = 3;  // groups
constexpr int64_t kWidth = 3, kFirstShared = 4;

// tp 4 on two kv heads: ranks 0, 1 and ranks 2, 3 share one each.
bool same_group(Axis axis, const MeshCoord& a, const MeshCoord& b) {
  switch (axis) {
    case Axis::tp: return a.pp == b.pp && a.dp == b.dp;
    case Axis::kv: return a.pp == b.pp && a.dp == b.dp && a.tp / 2 == b.tp / 2;
    case Axis::dp: return a.pp == b.pp && a.tp == b.tp;
    default: return a.dp == b.dp && a.tp == b.tp;  // two stages: both are ends
  }
}

double local_gradient(int rank, ParamId id, int64_t element) { return 100.0 * rank + 10 * id + static_cast<double>(element % 7); }

// The gradient after the sums along `axes`, one after the other.
double summed(const MeshShape& shape, int rank, ParamId id, int64_t element, std::vector<Axis> axes) {
  if (axes.empty()) return local_gradient(rank, id, element);
  const Axis last = axes.back();
  axes.pop_back();
  double sum = 0;
  for (int r = 0; r < shape.ranks(); ++r)
    if (same_group(last, coord_of(r, shape), coord_of(rank, shape))) sum += summed(shape, r, id, element, axes);
  return sum;
}

class Rank {
 public:
  Rank(const Config& config, Comm& world)
      : mesh(config, world, [](std::unique_ptr<Comm> c) { return c; }),
        params(declare(mesh), precision_of(PrecisionKind::fp32), memory_of(host_, memory_), sharding_of(config, mesh), ParamUse::training),
        ops(memory_[Purpose::temp]),
        sync(params, mesh, config.parallel.zero1, 1, ops, memory_[Purpose::comm]),
        rank(world.rank()) {
    mesh.reserve(memory_[Purpose::comm]);
    for (ParamId id = 0; id < params.size(); ++id)
      for (int64_t e = 0; e < params.grad(id).numel(); ++e) store_f64(params.grad(id), e, local_gradient(rank, id, e));
    sync.begin_step(1, nullptr);
  }

  // Axes along which the element is summed, but for dp.
  static std::vector<Axis> axes_of(ParamId id, int64_t element) {
    switch (id) {
      case 0: return {};  // a copy
      case 1: return {Axis::tp};
      case 2: return element < kFirstShared * kWidth ? std::vector<Axis>{} : std::vector<Axis>{Axis::kv};
      default: return {Axis::tp, Axis::ends};
    }
  }
  void expect(ParamId id, bool partial_sums, bool over_dp) const {
    const Bucket& bucket = *std::find_if(params.buckets().begin(), params.buckets().end(), [&](const Bucket& b) {
      return std::find(b.params.begin(), b.params.end(), id) != b.params.end();
    });
    for (int64_t e = 0; e < params.grad(id).numel(); ++e) {
      const int64_t at = params.offset(id) + e;
      if (over_dp && (at < bucket.own.begin || at >= bucket.own.end())) continue;  // another shard's
      std::vector<Axis> axes = partial_sums ? axes_of(id, e) : std::vector<Axis>{};
      if (over_dp) axes.push_back(Axis::dp);
      ASSERT_EQ(load_f64(params.grad(id), e), summed(mesh.shape(), rank, id, e, axes))
          << params.spec(id).name << "[" << e << "] on " << rank;
    }
  }

 private:
  static std::vector<ParamSpec> declare(const Mesh& mesh) {
    ParamBuilder builder(mesh, false);
    builder.next_group();
    const auto whole = [&](const char* name) { return builder.add_split(name, {6, kWidth}, 0, {{.global = 0, .count = 6}}, 1); };
    builder.share(whole("copy"), Axis::tp, SharedGrad::copy);
    builder.share(whole("partial"), Axis::tp, SharedGrad::partial);
    EXPECT_EQ(builder.next_group(), kRows);
    builder.share(whole("rows"), Axis::kv, SharedGrad::partial, kFirstShared);
    EXPECT_EQ(builder.next_group(), kLate);
    const ParamId late = whole("late");
    builder.share(late, Axis::tp, SharedGrad::partial);
    builder.share(late, Axis::ends, SharedGrad::partial);
    return builder.take();
  }
  static Memory& memory_of(HostMemory& host, Memory& memory) {
    for (const Purpose p : {Purpose::weight, Purpose::grad, Purpose::optimizer}) memory.set(p, host.region(p, 1 << 16));
    memory.set(Purpose::comm, host.region(Purpose::comm, 16 << 20));
    return memory;
  }
  static Sharding sharding_of(const Config& config, const Mesh& mesh) {
    return config.parallel.zero1 ? Sharding{.shards = mesh.shape().dp, .shard = mesh.coord().dp, .bucket_bytes = 1}
                                 : Sharding{.bucket_bytes = 1};
  }

  HostMemory host_;
  Memory memory_;

 public:
  Mesh mesh;
  ParamStore params;
  RefOps ops;
  GradSync sync;
  int rank;
};

void run(const Layout& layout, const std::function<void(Rank&)>& body) {
  const Config config = layout.config();
  run_thread_ranks(mesh_shape(config.parallel).ranks(), [&](Comm& world) {
    Rank rank(config, world);
    body(rank);
  });
}

// The last stage never runs the backward that completes its copy of a late gradient (a tied embedding's look-up).
void complete_groups(Rank& r) {
  r.sync.group_done(kRows);
  r.sync.group_done(kEarly);
  if (r.mesh.first_stage()) r.sync.group_done(kLate);
}

TEST(GradSync, SumsPartialGradientsWithTheirGroupAndLateOnesAtTheEnd) {
  run({.tp = 4, .pp = 2}, [](Rank& r) {
    r.sync.group_done(kRows);
    r.expect(1, false, false);
    r.expect(2, true, false);
    r.sync.group_done(kEarly);
    r.expect(0, true, false);
    r.expect(1, true, false);
    if (r.mesh.first_stage()) r.sync.group_done(kLate);
    r.expect(3, false, false);
    r.sync.finish();
    for (ParamId id = 0; id < 4; ++id) r.expect(id, true, false);
  });
}

TEST(GradSync, SumsOverDpAfterwards) {
  for (const bool zero1 : {false, true})
    run({.tp = 4, .pp = 2, .dp = 2, .zero1 = zero1}, [](Rank& r) {
      complete_groups(r);
      r.sync.finish();
      for (ParamId id = 0; id < 4; ++id) r.expect(id, true, true);
    });
}

TEST(GradSync, GathersTheShardsOfWeights) {
  run({.tp = 4, .pp = 2, .dp = 2, .zero1 = true}, [](Rank& r) {
    complete_groups(r);
    r.sync.finish();
    const auto& buckets = r.params.buckets();
    for (int b = 0; b < static_cast<int>(buckets.size()); ++b) {
      const Part own = buckets[static_cast<size_t>(b)].own;
      for (int64_t e = own.begin; e < own.end(); ++e) store_f64(buckets[static_cast<size_t>(b)].weight, e, static_cast<double>(e));
      r.sync.gather(b);
    }
    r.sync.finish_gathers();
    for (const Bucket& b : buckets)
      for (int64_t e = 0; e < b.weight.numel(); ++e) ASSERT_EQ(load_f64(b.weight, e), static_cast<double>(e));
  });
}

TEST(GradSync, RefusesGroupsThatAreCompleteTwiceOrNever) {
  run({.dp = 1}, [](Rank& r) {
    r.sync.group_done(kRows);
    EXPECT_THROW(r.sync.group_done(kRows), CheckFailed);
    EXPECT_THROW(r.sync.finish(), CheckFailed);
    r.sync.begin_step(1, nullptr);
    r.sync.all_done();
    EXPECT_NO_THROW(r.sync.finish());
  });
}

}  // namespace
}  // namespace hlat
