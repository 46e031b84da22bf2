// The check of sums on a group that rounds bf16 at each addition: every part of a large tensor is looked at, and who is wrong is named.
#include "health/sum_check.h"

#include <gtest/gtest.h>

#include "backend/cpu/cpu_backend.h"
#include "comm/host_exchange.h"
#include "support/host_memory.h"
#include "support/layout_run.h"
#include "support/library_comm.h"
#include "support/thread_comm.h"

namespace hlat {
namespace {

constexpr int kRanks = 4;
constexpr int64_t kElements = 600'000;  // three stretches of 64 Ki for each of four shares

// What the check says on rank 0 when `harm` has had the gradient after its sum, alike on all ranks.
std::string words_after(const std::function<void(const Tensor&)>& harm) {
  std::string words;
  const Config config = Layout{.dp = kRanks}.config();
  run_thread_ranks(kRanks, [&](Comm& world) {
    HostMemory host;
    Memory memory;
    for (const Purpose p : {Purpose::weight, Purpose::grad, Purpose::optimizer, Purpose::io, Purpose::comm})
      memory.set(p, host.region(p, 16 << 20));
    const Mesh mesh(config, world,
                    [&](std::unique_ptr<Comm> comm) -> std::unique_ptr<Comm> { return std::make_unique<LibraryComm>(std::move(comm), 0); });
    mesh.reserve(memory[Purpose::comm]);
    ParamBuilder builder(mesh, false);
    builder.add_split("matrix", {kElements}, 0, {{.global = 0, .count = kElements}}, 1);
    const ParamStore params(builder.take(), precision_of(PrecisionKind::bf16), memory, {}, ParamUse::training);
    CpuBackend backend({.threads = 1, .isa = "auto"});
    const std::unique_ptr<Ops> ops = backend.make_ops(memory[Purpose::io]);
    const SumCheck check(mesh, params, memory[Purpose::io]);
    from_f64(params.grad(0), normals(kElements, fmt::format("gradient of rank {}", world.rank())));
    check.before(*ops, 0);
    mesh.along(Axis::dp).all_reduce(params.buckets()[0].grad);
    harm(params.grad(0));
    const auto found = check.difference(*ops, backend.device());
    if (world.rank() == 0) words = found.value_or("");
  });
  return words;
}

TEST(SumCheckSamples, PassSoundSums) {
  EXPECT_EQ(words_after([](const Tensor&) {}), "");
}

TEST(SumCheckSamples, SeeAStretchThatIsLostOrDoubledAnywhere) {
  constexpr int64_t kStretch = int64_t{1} << 16;
  for (int64_t begin = 0; begin + 2 * kStretch <= kElements; begin += kStretch / 2 + 1) {
    const int share = static_cast<int>((begin + kStretch) / (kElements / kRanks));
    for (const double factor : {0.0, 2.0}) {
      const std::string words = words_after([&](const Tensor& grad) {
        for (int64_t i = begin; i < begin + 2 * kStretch; ++i) store_f64(grad, i, factor * load_f64(grad, i));
      });
      EXPECT_TRUE(words.starts_with("gradients of matrix are summed wrongly over dp ranks 0, 1, 2, 3: the share of rank ")) << words;
      const std::string named = words.substr(std::min(words.size(), words.find("share of rank ") + 14), 1);
      EXPECT_TRUE(named == std::to_string(share) || (share > 0 && named == std::to_string(share - 1))) << words;
      EXPECT_NE(words.find("differs in 32 elements"), std::string::npos) << words;
    }
  }
}

}  // namespace
}  // namespace hlat
