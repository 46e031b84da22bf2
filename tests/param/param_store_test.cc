// The parameter store: what it takes for training and for weights only, and how its buckets lie in memory.
#include "param/param_store.h"

#include <gtest/gtest.h>

#include <numeric>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/cpu_ops.h"

namespace hlat {
namespace {

constexpr int64_t kElements = 300 * 40 + 77 + 512;  // of the parameters below
constexpr int64_t kPadded = 12032 + 128 + 512;      // each starts on a multiple of 128 elements
constexpr Precision kMixed{.compute = DType::bf16, .weight = DType::bf16, .master = true, .moment = DType::f32, .grad = DType::f32};

std::vector<ParamSpec> some_specs() {
  return {{.name = "matrix", .slice = Slice::whole({300, 40}), .init_std = 0.1, .group = 0},
          {.name = "norm", .slice = Slice::whole({77}), .group = 0},
          {.name = "output", .slice = Slice::whole({2, 256}), .init_std = 0.2, .group = 1}};
}

TEST(ParamStore, WeightsAloneTakeNoGradientsAndNoState) {
  Memory training, weights;
  const ParamStore full(some_specs(), kMixed, training, {}, ParamUse::training);
  const ParamStore lean(some_specs(), kMixed, weights, {}, ParamUse::weights);
  const MemoryPlan most = training.high_water(), least = weights.high_water();
  EXPECT_EQ(most[Purpose::weight], 2u * kPadded);
  EXPECT_EQ(most[Purpose::grad], 4u * kPadded);
  EXPECT_EQ(most[Purpose::optimizer], (4u + 4 + 4) * kPadded);
  EXPECT_EQ(least[Purpose::weight], most[Purpose::weight]);
  EXPECT_EQ(least.total(), least[Purpose::weight]) << "weights and nothing else";
  EXPECT_EQ(full.units().size(), 3u);
  EXPECT_TRUE(lean.units().empty() && lean.counted_units() == 0);
  EXPECT_EQ(full.grad(1).shape, Shape({77}));
  EXPECT_THROW(lean.grad(1), CheckFailed);
}

// The memory of a store on the host, and its weights after init.
struct Initialised {
  explicit Initialised(ParamUse use) : memory(device, planned(use)), params(some_specs(), kMixed, memory.memory(), {}, use) {
    CpuOps ops(memory.memory()[Purpose::temp], {});
    params.init(ops, 7);
    for (ParamId id = 0; id < params.size(); ++id) {
      const Tensor w = params.weight(id);
      bytes.insert(bytes.end(), w.as<std::byte>(), w.as<std::byte>() + w.bytes());
    }
  }
  static MemoryPlan planned(ParamUse use) {
    Memory memory;
    const ParamStore measured(some_specs(), kMixed, memory, {}, use);
    return memory.high_water();
  }
  CpuDevice device;
  PlannedMemory memory;
  ParamStore params;
  std::vector<std::byte> bytes;
};

TEST(ParamStore, InitialWeightsDoNotDependOnTheUse) {
  const Initialised training(ParamUse::training), weights(ParamUse::weights);
  ASSERT_EQ(training.bytes.size(), 2u * kElements);
  EXPECT_TRUE(training.bytes == weights.bytes);
  EXPECT_NE(training.bytes, std::vector<std::byte>(training.bytes.size()));
}

TEST(ParamStore, ABucketIsOneAllocationWithNamedParts) {
  for (const int shards : {1, 8}) {
    Memory memory;
    const ParamStore params(some_specs(), kMixed, memory, {.shards = shards, .shard = 0, .bucket_bytes = 1}, ParamUse::training);
    ASSERT_EQ(params.buckets().size(), 2u);
    const Bucket& b = params.buckets()[1];  // a backward completes the group of the first parameters last
    for (const ParamId id : {0, 1}) {
      EXPECT_EQ(params.weight(id).allocation, b.weight.allocation);
      EXPECT_EQ(params.grad(id).allocation, b.grad.allocation);
    }
    EXPECT_NE(params.weight(2).allocation, b.weight.allocation);
    const Allocation& weight = memory.allocation(b.weight.allocation);
    EXPECT_EQ(weight.label, "bucket 1");
    EXPECT_EQ(memory.allocation(b.grad.allocation).label, "bucket 1 gradient");
    ASSERT_EQ(weight.parts.size(), shards == 1 ? 2u : 3u);
    EXPECT_EQ(weight.parts[0].label, "matrix");
    EXPECT_EQ(weight.parts[0].bytes, 2u * 12032);
    EXPECT_EQ(weight.parts[1].label, "norm");
    EXPECT_EQ(weight.parts.back().label, shards == 1 ? "norm" : "bucket padding");
    const auto add = [](size_t sum, const RegionEntry& e) { return sum + e.bytes; };
    EXPECT_EQ(std::accumulate(weight.parts.begin(), weight.parts.end(), size_t{0}, add), b.weight.bytes());
  }
}

}  // namespace
}  // namespace hlat
