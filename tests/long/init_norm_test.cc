// Draws every initial weight of HLAT-7B, a piece at a time, and takes the norm: the paper's curve starts at 1542.
#include <gtest/gtest.h>

#include <cmath>

#include "backend/cpu/cpu_backend.h"
#include "config/load.h"
#include "model/llama.h"
#include "support/host_memory.h"
#include "support/one_rank.h"

namespace hlat {
namespace {

TEST(InitNorm, Hlat7bStartsWhereThePaperDoes) {
  constexpr int64_t kPiece = int64_t{1} << 24;
  Config config = load_config(HLAT_SOURCE_DIR "/configs/hlat-7b.yaml").config;
  config = with_one_rank(config);
  Region temp;
  CpuOps ops(temp, {.threads = 2, .isa = "auto"});
  HostMemory host;
  const Tensor piece = host.zeros(DType::f32, {kPiece}), sq = host.zeros(DType::f64, {1});
  double total = 0;
  const Llama model(config, one_rank(config));
  for (const ParamSpec& s : model.specs()) {
    if (s.init_std == 0) {
      total += static_cast<double>(s.slice.global.numel());
      continue;
    }
    for (int64_t first = 0; first < s.slice.global.numel(); first += kPiece) {
      const Tensor part = piece.rows(0, std::min(kPiece, s.slice.global.numel() - first));
      ops.fill_normal(part, s.init_std, {.seed = config.run.seed, .stream = hash_name(s.name), .purpose = Noise::init, .step = 0},
                      {.first = first});
      ops.sum_squares(sq, part);
      total += *sq.as<double>();
    }
  }
  // The norm of n normals scatters by std / sqrt(2): 0.015 here.
  EXPECT_NEAR(std::sqrt(total), 1542, 0.5);
}

}  // namespace
}  // namespace hlat
