// Known products and sums: right on a sound device and transport, and a wrong one is named with its rank and host.
#include "health/light_check.h"

#include <gtest/gtest.h>

#include "backend/null/null_backend.h"
#include "base/machine.h"
#include "health/fingerprint.h"
#include "ops/device.h"
#include "support/faulty_comm.h"
#include "support/layout_run.h"
#include "support/test_device.h"
#include "support/thread_comm.h"

namespace hlat {
namespace {

TEST(KnownProduct, IsTheProductOfItsFactors) {
  const KnownProduct known(64, 3);
  const std::vector<std::byte> bytes_a = known.a(DType::f32), bytes_b = known.b(DType::f32);
  const auto* a = reinterpret_cast<const float*>(bytes_a.data());
  const auto* b = reinterpret_cast<const float*>(bytes_b.data());
  std::vector<float> c(64 * 64);
  for (size_t i = 0; i < 64; ++i)
    for (size_t j = 0; j < 64; ++j)
      for (size_t k = 0; k < 64; ++k) c[i * 64 + j] += a[i * 64 + k] * b[j * 64 + k];
  EXPECT_EQ(known.wrong(c), std::nullopt);
  EXPECT_EQ(known.fingerprint(), fingerprint(c.data(), c.size() * sizeof(float)));
  c[64 * 5 + 7] += 1;
  ASSERT_TRUE(known.wrong(c));
  EXPECT_EQ(known.wrong(c)->find("element (5, 7) is "), 0u) << *known.wrong(c);
  EXPECT_NE(known.fingerprint(), fingerprint(c.data(), c.size() * sizeof(float)));
}

TEST(KnownProduct, HasTheBitsAndTheFingerprintOfEveryDevice) {
  constexpr int64_t kSize = 192;
  const KnownProduct known(kSize, 4);
  for (const TestDevice& device : test_devices())
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const auto backend = device.make();
      MemoryPlan plan;
      plan.bytes[static_cast<size_t>(Purpose::temp)] = size_t{64} << 20;
      PlannedMemory memory(backend->device(), plan);
      Region& temp = memory.memory()[Purpose::temp];
      const Tensor a = temp.alloc(dtype, {kSize, kSize}, "a"), b = temp.alloc(dtype, {kSize, kSize}, "b");
      const Tensor c = temp.alloc(DType::f32, {kSize, kSize}, "c"), sum = temp.alloc(DType::i32, {2}, "sum");
      const auto ops = backend->make_ops(temp);
      backend->device().upload(a, known.a(dtype).data());
      backend->device().upload(b, known.b(dtype).data());
      ops->matmul(c, a, b, {.trans_b = true});
      ops->checksum(sum, c);
      uint64_t got = 0;
      backend->device().download(&got, sum);
      EXPECT_EQ(got, known.fingerprint()) << device.name;
    }
}

TEST(Fingerprint, SeesTheBytesPastTheLastWord) {
  const std::array<unsigned char, 11> a{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, b{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12};
  EXPECT_NE(fingerprint(a.data(), a.size()), fingerprint(b.data(), b.size()));
  EXPECT_EQ(fingerprint(a.data(), 10), fingerprint(b.data(), 10));
}

// Checks once on every rank of dp 3, whose messages on dp go through `fault` (rank 1 receives); the message of rank 0's exception.
std::string checked(Fault& fault) {
  Config config = Layout{.dp = 3}.config();
  std::string words;
  run_thread_ranks(3, [&](Comm& world) {
    const Mesh mesh(config, world, [&](std::unique_ptr<Comm> comm) -> std::unique_ptr<Comm> {
      if (comm->size() == 1) return comm;
      return std::make_unique<FaultyComm>(std::move(comm), fault, world.rank() == fault.rank);
    });
    CpuBackend backend({.threads = 1});
    Memory measured;
    const auto model = backend.make_ops(measured[Purpose::temp]);
    NullBackend null(model.get());
    const auto null_ops = null.make_ops(measured[Purpose::temp]);
    LightCheck(mesh, DType::f32, 10, *null_ops, null.device(), measured);
    MemoryPlan plan = measured.high_water();
    const MemoryPlan planned = plan;
    plan.bytes[static_cast<size_t>(Purpose::comm)] = 16 * sum_staging(3);
    PlannedMemory memory(backend.device(), plan);
    mesh.reserve(memory.memory()[Purpose::comm]);
    const auto ops = backend.make_ops(memory.memory()[Purpose::temp]);
    LightCheck check(mesh, DType::f32, 10, *ops, backend.device(), memory.memory());
    EXPECT_TRUE(check.due(20));
    EXPECT_FALSE(check.due(21));
    try {
      check.check(20);
    } catch (const NumericalError& e) {
      if (world.rank() == 0) words = e.what();
    }
    EXPECT_EQ(memory.memory().high_water()[Purpose::io], planned[Purpose::io]);
    EXPECT_EQ(memory.memory().high_water()[Purpose::temp], planned[Purpose::temp]) << "a check takes what was planned";
  });
  return words;
}

// The table of positions 0 to 99 in host memory, and one whose base is another.
TEST(LightCheck, ATableOfRopeWithAnotherBaseIsSeen) {
  CpuBackend backend({.threads = 1});
  MemoryPlan plan;
  plan.bytes[static_cast<size_t>(Purpose::temp)] = size_t{1} << 20;
  PlannedMemory memory(backend.device(), plan);
  Region& temp = memory.memory()[Purpose::temp];
  const auto ops = backend.make_ops(temp);
  const Tensor table = temp.alloc(DType::f32, {100, 16}, "rope table");
  const RopeFrequencies right{.theta = 10000}, other{.theta = 20000};
  ops->rope_table(table, right);
  for (const int64_t positions : {1, 7, 64, 100, 500}) {
    EXPECT_EQ(wrong_rope(backend.device(), table, right, positions), "") << positions;
    EXPECT_NE(wrong_rope(backend.device(), table, other, positions), "") << positions;
  }
  static_cast<float*>(table.data)[99 * 16 + 3] += 1e-3F;  // the last position is always looked at
  EXPECT_EQ(wrong_rope(backend.device(), table, right, 2).find("the cosine of pair 3 at position 99 is "), 0u);
}

// A stage whose table goes wrong after two steps: the next check ends the run on all ranks.
TEST(LightCheck, AWrongTableOnOneStageEndsTheRunWithItsName) {
  Config config = Layout{.pp = 2}.config();
  config.parallel.health_every = 4;
  const auto spoil = [](TrainStep& train, int64_t step) {
    const Tensor table = train.executor().rope_table();
    if (step == 2 && train.executor().mesh().coord().pp == 1) train.executor().ops().rope_table(table, {.theta = 1e6});
    ASSERT_LT(step, 4) << "the run went on";
  };
  try {
    run_layout(config, 6, spoil);
    FAIL() << "nothing was found";
  } catch (const NumericalError& e) {
    EXPECT_NE(std::string(e.what()).find("step 4: rank 1 on "), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("the table of RoPE on pipeline stage 1 is not that of the config: "), std::string::npos)
        << e.what();
  }
}

TEST(LightCheck, PassesOnSoundRanks) {
  Fault none{.axis = "dp", .rank = 1};
  EXPECT_EQ(checked(none), "");
}

TEST(LightCheck, AWrongSumIsNamedOnAllRanksWithRankAndHost) {
  Fault fault{.axis = "dp", .kind = CommKind::all_reduce, .rank = 1};
  fault.armed = true;
  const std::string words = checked(fault);
  EXPECT_EQ(words.find("step 20: rank 1 on " + host_name() + ": a sum over dp with a known answer is wrong: element "), 0u) << words;
}

}  // namespace
}  // namespace hlat
