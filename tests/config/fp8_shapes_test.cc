// Shapes that FP8 products take, and layouts that would cut them: refused by name, before anything is built.
#include <gtest/gtest.h>

#include <functional>

#include "config/validate.h"

namespace hlat {
namespace {

Config fp8_config() {
  Config c;
  c.model = {.preset = {}, .layers = 2, .hidden = 128, .heads = 4, .kv_heads = 2, .ffn = 384, .vocab = 101};
  c.train.seq_len = 64;
  c.train.global_batch = 8;
  c.train.precision = PrecisionKind::fp8;
  c.parallel.dp = 1;
  return c;
}

std::string problem(const std::function<void(Config&)>& edit) {
  Config c = fp8_config();
  edit(c);
  const std::vector<Violation> found = validate(c);
  return found.empty() ? "" : found[0].message;
}

TEST(Fp8Shapes, TokensOfAMicroBatch) {
  EXPECT_EQ(problem([](Config& c) { c.train.seq_len = 72; }), "a micro-batch has 72 tokens; FP8 products need a multiple of 16");
  EXPECT_EQ(problem([](Config& c) { c.train.seq_len = 72, c.train.micro_batch = 2; }), "");
  EXPECT_EQ(problem([](Config& c) { c.train.seq_len = 72, c.train.micro_batch = 0; }), "") << "auto: 2, 4 and 8 do";
  EXPECT_EQ(
      problem([](Config& c) { c.train.seq_len = 33, c.train.micro_batch = 0; }),
      "even a micro-batch of all 8 sequences of a replica has 264 tokens; FP8 products need a multiple of 16: fewer replicas or a larger "
      "batch have more");
}

TEST(Fp8Shapes, SharesOfTensorParallelRanks) {
  EXPECT_EQ(problem([](Config& c) { c.parallel.tp = 2; }), "");
  EXPECT_EQ(problem([](Config& c) { c.parallel.tp = 2, c.model.ffn = 400; }),
            "tp rank 0 has 200 of the 400 columns of model.ffn; FP8 products need a multiple of 16");
  // Gate and up together have 720 rows, which FP8 takes, and 360 on a rank, which it does not.
  EXPECT_EQ(problem([](Config& c) { c.parallel.tp = 2, c.model.ffn = 360; }),
            "tp rank 0 has 360 of the 720 columns of gate and up together (model.ffn); FP8 products need a multiple of 16");
  EXPECT_EQ(problem([](Config& c) { c.parallel.tp = 2, c.model.ffn = 372; }), "") << "its MLP is bf16";
}

// A head may be narrower than 16 columns where those of each rank together are a multiple of it.
TEST(Fp8Shapes, SharesOfNarrowHeads) {
  const auto heads = [](int64_t q, int64_t kv, int64_t columns, int64_t tp) {
    return problem([&](Config& c) { c.model.heads = q, c.model.kv_heads = kv, c.model.hidden = q * columns, c.parallel.tp = tp; });
  };
  EXPECT_EQ(heads(16, 2, 8, 2), "");
  EXPECT_EQ(heads(16, 4, 4, 2), "");
  EXPECT_EQ(heads(16, 1, 8, 4), "") << "four ranks hold the kv head";
  EXPECT_EQ(heads(12, 3, 8, 2), "") << "uneven: 8 heads and 4";
  EXPECT_EQ(heads(16, 2, 8, 3), "") << "uneven: 8 heads, 4 and 4";
  EXPECT_EQ(heads(8, 8, 8, 8), "tp rank 0 has 8 of the 64 columns of all heads (1 of 8); FP8 products need a multiple of 16");
  EXPECT_EQ(heads(16, 16, 8, 3), "tp rank 1 has 40 of the 128 columns of all heads (5 of 16); FP8 products need a multiple of 16");
  EXPECT_EQ(heads(16, 2, 4, 2), "tp rank 0 has 40 of the 80 columns of queries, keys and values; FP8 products need a multiple of 16");
  EXPECT_EQ(heads(16, 1, 4, 2), "") << "queries, keys and values are bf16: 72 columns in the whole model";
  EXPECT_EQ(heads(16, 1, 8, 17), "must not exceed model.heads (16): every rank needs a head");
}

TEST(Fp8Shapes, SeparateProjectionsHaveNone) {
  EXPECT_EQ(problem([](Config& c) { c.model.coalesced = false; }), "must be true with FP8 products: separate projections have none");
}

}  // namespace
}  // namespace hlat
