// The shrunk copy keeps what a layout meets, and is small.
#include "selfcheck/shrunk.h"

#include <gtest/gtest.h>

#include <cmath>

#include "config/linear_shapes.h"
#include "config/validate.h"
#include "model/llama.h"
#include "parallel/partition.h"

namespace hlat {
namespace {

Config large(int64_t tp, int64_t pp, int64_t dp) {
  Config c;
  c.model = {.preset = {}, .layers = 34, .hidden = 4096, .heads = 32, .kv_heads = 8, .ffn = 11009, .vocab = 32003};
  c.train.seq_len = 4096;
  c.train.global_batch = 64 * dp;
  c.train.micro_batch = 4;
  c.train.precision = PrecisionKind::mixed;
  c.parallel.tp = tp;
  c.parallel.pp = pp;
  c.parallel.dp = dp;
  return c;
}

std::vector<bool> larger_pieces(const Config& c) {
  const auto pieces =
      partition_layers(c.model.layers, static_cast<int>(c.parallel.pp), static_cast<int>(c.parallel.chunks), c.parallel.cuts);
  int64_t least = pieces.front().count;
  for (const Part& p : pieces) least = std::min(least, p.count);
  std::vector<bool> larger;
  for (const Part& p : pieces) larger.push_back(p.count > least);
  return larger;
}

TEST(Shrunk, KeepsTheLayoutAndItsRemainders) {
  for (const auto& [tp, pp, dp] : {std::array{1, 1, 1}, {2, 4, 2}, {8, 4, 8}, {3, 2, 1}, {16, 1, 2}, {1, 8, 4}, {7, 5, 3}}) {
    for (const int64_t kv : {1, 4, 8, 32}) {
      Config c = large(tp, pp, dp);
      c.model.kv_heads = kv;
      c.parallel.sequence = true;
      const Config s = shrunk(c);
      EXPECT_EQ(s.parallel.tp, tp);
      EXPECT_EQ(s.parallel.pp, pp);
      EXPECT_EQ(s.parallel.dp, dp);
      EXPECT_TRUE(s.parallel.sequence && s.parallel.zero1);
      EXPECT_EQ(s.train.precision, c.train.precision);
      EXPECT_EQ(s.model.heads / s.model.kv(), c.model.heads / kv) << "ratio of heads";
      EXPECT_EQ(s.model.kv() % tp, kv % tp) << tp << " " << kv;
      EXPECT_EQ(s.model.kv() < tp, kv < tp);
      EXPECT_EQ(s.model.vocab % tp, c.model.vocab % tp);
      EXPECT_EQ(s.model.ffn % tp, c.model.ffn % tp);
      EXPECT_EQ(s.train.seq_len % tp, c.train.seq_len % tp);
      EXPECT_EQ(larger_pieces(s), larger_pieces(c));
      EXPECT_EQ(s.train.global_batch % (s.train.micro_batch * dp), 0);
      EXPECT_LE(parameter_count(s.model), 8 << 20);
      EXPECT_NEAR(s.model.init_std * std::sqrt(s.model.hidden), c.model.init_std * std::sqrt(c.model.hidden), 1e-9);
      const auto wrong = validate(s, {});
      EXPECT_TRUE(wrong.empty()) << tp << " " << pp << " " << kv;
    }
  }
}

// Shapes of FP8 products stay such, and those that are not FP8 stay wide.
TEST(Shrunk, KeepsTheShapesOfFp8) {
  struct Row {
    int64_t tp, heads, kv, head, ffn, seq, micro;
  };
  for (const Row& r : {Row{1, 32, 32, 128, 11008, 4096, 1},
                       {8, 64, 8, 128, 28672, 4096, 1},
                       {3, 12, 3, 64, 4608, 4096, 1},
                       {2, 32, 4, 64, 5632, 72, 8},
                       {1, 16, 16, 64, 5000, 68, 4},
                       {4, 32, 8, 128, 8192, 2052, 4},
                       {1, 32, 32, 100, 8640, 2048, 1},
                       {1, 32, 1, 100, 8640, 2048, 1},
                       {1, 40, 5, 100, 8648, 2048, 1},
                       {1, 32, 16, 98, 8640, 2048, 1},
                       {1, 16, 8, 72, 3072, 2048, 1},
                       {2, 32, 16, 72, 3072, 2048, 1},
                       {2, 32, 32, 100, 8640, 2048, 1},
                       {3, 48, 24, 40, 4608, 2048, 1}}) {
    Config c = large(r.tp, 1, 1);
    c.train.precision = PrecisionKind::fp8;
    c.model.heads = r.heads, c.model.kv_heads = r.kv, c.model.hidden = r.heads * r.head, c.model.ffn = r.ffn;
    c.train.seq_len = r.seq, c.train.micro_batch = r.micro;
    const auto given = validate(c, {});
    ASSERT_TRUE(given.empty()) << r.ffn << ": " << (given.empty() ? "" : given[0].message);
    const Config s = shrunk(c);
    const auto wrong = validate(s, {});
    EXPECT_TRUE(wrong.empty()) << r.ffn << ": " << (wrong.empty() ? "" : wrong[0].message);
    const auto before = linear_shapes(c.model), after = linear_shapes(s.model);
    for (size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(after[i].outputs % 16 == 0, before[i].outputs % 16 == 0) << r.ffn << " " << before[i].name;
      EXPECT_EQ(after[i].inputs % 16 == 0, before[i].inputs % 16 == 0) << r.ffn << " " << before[i].name;
    }
    EXPECT_LE(parameter_count(s.model), 16 << 20) << "64 heads of 16 columns";
  }
}

TEST(Shrunk, AMicroBatchThatIsChosenIsOneThatFp8Takes) {
  for (const bool small : {true, false}) {
    Config c = small ? Config() : large(1, 1, 2);
    c.parallel.dp = 2;
    c.train.precision = PrecisionKind::fp8;
    c.train.seq_len = small ? 12 : 1000, c.train.micro_batch = 0, c.train.global_batch = 16;
    ASSERT_TRUE(validate(c).empty()) << validate(c)[0].message;
    const Config s = shrunk(c);
    EXPECT_EQ(is_small(c), small);
    EXPECT_GT(s.train.micro_batch, 1);
    EXPECT_EQ(s.train.micro_batch * s.train.seq_len % 16, 0);
    EXPECT_TRUE(validate(s).empty()) << validate(s)[0].message;
  }
}

// An error of attention from the second tile on, or of the kernels of one size of a head, can show.
TEST(Shrunk, HasMoreThanTwoTilesOfAttentionAndTheHeadsOfTheRun) {
  for (const bool gpu : {false, true}) {
    const int64_t tile = gpu ? 128 : 64;
    for (const int64_t tp : {1, 2, 3, 8}) {
      for (const PrecisionKind precision : {PrecisionKind::mixed, PrecisionKind::fp8}) {
        Config c = large(tp, 1, 2);
        c.parallel.sequence = true;
        c.train.precision = precision;
        EXPECT_GT(shrunk(c, gpu).train.seq_len, 2 * tile) << tp;
        EXPECT_LE(shrunk(c, gpu).train.seq_len, 4 * tile) << tp;
      }
    }
    Config c = large(1, 1, 1);
    c.train.seq_len = 48;
    EXPECT_EQ(shrunk(c, gpu).train.seq_len, 48) << "no longer than the run's";
    EXPECT_EQ(shrunk(large(1, 1, 1), gpu).model.head_dim(), 128);
  }
  Config c = large(1, 1, 1);  // HLAT-70B: 8 query heads for each kv head
  c.model.hidden = 8192, c.model.heads = 64, c.model.kv_heads = 8;
  EXPECT_EQ(shrunk(c, true).model.head_dim(), 128);
  EXPECT_LE(shrunk(c, false).model.head_dim(), 64) << "seconds on a CPU too";
  for (const int64_t dp : {1, 8, 32}) {
    c.parallel.tp = 8, c.parallel.dp = dp;
    EXPECT_EQ(shrunk(c, true).model.head_dim() % 8, 0) << "of the sizes that GPUs have kernels for";
  }
  c.parallel.tp = 1, c.parallel.dp = 128;
  EXPECT_LE(parameter_count(shrunk(c, true).model) * 128, 1 << 27) << "gradients of all replicas on every rank";
  Config odd = large(1, 1, 1);
  odd.model.hidden = 40 * 24, odd.model.heads = 24, odd.model.kv_heads = 8;
  EXPECT_EQ(shrunk(odd).model.head_dim(), 40);
}

TEST(Shrunk, KeepsUnevenCutsAndChunks) {
  Config c = large(2, 4, 1);
  c.parallel.cuts = {8, 17, 26};
  EXPECT_EQ(larger_pieces(shrunk(c)), larger_pieces(c));
  EXPECT_EQ(shrunk(c).parallel.cuts, (std::vector<int64_t>{1, 3, 5}));
  c.parallel.cuts = {};
  c.parallel.chunks = 3;
  EXPECT_EQ(shrunk(c).parallel.chunks, 3);
  EXPECT_EQ(shrunk(c).model.layers, 12 + 34 % 12);
}

TEST(Shrunk, KeepsPoliciesOfRecomputationAndTies) {
  Config c = large(1, 1, 2);
  c.train.recompute = {.kind = RecomputeKind::full, .every = 3};
  c.model.tied = true;
  c.model.scaled_init = false;
  const Config s = shrunk(c);
  EXPECT_EQ(s.train.recompute, c.train.recompute);
  EXPECT_EQ(s.model.layers, 4) << "blocks that are recomputed, and some that are not";
  EXPECT_TRUE(s.model.tied);
  EXPECT_FALSE(s.model.scaled_init);
  EXPECT_EQ(s.model.head_dim() % 16, 0);
}

TEST(Shrunk, ASmallModelStaysAsItIs) {
  Config c;
  c.parallel.dp = 1;
  c.train.precision = PrecisionKind::bf16_sr;
  ASSERT_TRUE(is_small(c));
  const Config s = shrunk(c);
  EXPECT_EQ(s.model, c.model);
  EXPECT_EQ(s.train.seq_len, c.train.seq_len);
  EXPECT_EQ(s.train.global_batch, c.train.global_batch);
}

TEST(Shrunk, AMicroBatchThatIsChosenLaterIsOne) {
  Config c = large(1, 1, 1);
  c.train.micro_batch = 0;
  EXPECT_EQ(shrunk(c).train.micro_batch, 1);
}

}  // namespace
}  // namespace hlat
