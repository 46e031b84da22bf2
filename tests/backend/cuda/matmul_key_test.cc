// The names of products: those of bf16 and f32 stand in checkpoints, and those of FP8 tell apart what needs another algorithm.
#include "backend/cuda/matmul/matmul_key.h"

#include <gtest/gtest.h>

#include <set>

namespace hlat {
namespace {

alignas(16) std::byte memory[64];

MatmulKey key(const MatmulShape& s, bool fast = false, size_t offset_c = 0) {
  const auto at = [](size_t offset, DType t, int64_t rows, int64_t width) { return Tensor::contiguous(memory + offset, t, {rows, width}); };
  return {s, at(offset_c, s.c, s.m, s.n), at(0, s.a, s.trans_a ? s.k : s.m, s.trans_a ? s.m : s.k),
          at(0, s.b, s.trans_b ? s.n : s.k, s.trans_b ? s.k : s.n), fast};
}

MatmulShape fp8(DType a, DType b, DType c, bool accumulate) {
  return {.m = 32, .n = 48, .k = 64, .trans_b = true, .accumulate = accumulate, .a = a, .b = b, .c = c};
}

TEST(MatmulKey, OfWideTypesIsWhatCheckpointsRecord) {
  const MatmulShape s{.m = 32, .n = 48, .k = 64, .trans_a = true, .accumulate = true, .a = DType::bf16, .b = DType::bf16, .c = DType::f32};
  EXPECT_EQ(key(s, false, 8).str(), "32x48x64 tn += bf16 f32 ld 48 32 48 align 8 16 16");
}

TEST(MatmulKey, OfFp8NamesBothTypesAndHowSumsAreKept) {
  EXPECT_EQ(key(fp8(DType::f8e5m2, DType::f8e4m3, DType::f32, true)).str(),
            "32x48x64 nt += f8e5m2 x f8e4m3 f32 ld 48 64 64 align 16 16 16");
  EXPECT_EQ(key(fp8(DType::f8e4m3, DType::f8e4m3, DType::bf16, false), true).str(),
            "32x48x64 nt f8e4m3 x f8e4m3 bf16 fast ld 48 64 64 align 16 16 16");
  std::set<std::string> names;
  std::set<MatmulKey> keys;
  const DType e4 = DType::f8e4m3, e5 = DType::f8e5m2;
  for (const auto& [a, b] : {std::pair{e4, e4}, std::pair{e5, e4}, std::pair{e4, e5}})
    for (const DType c : {DType::bf16, DType::f32})
      for (const bool accumulate : {false, true})
        for (const bool fast : {false, true}) {
          const MatmulKey k = key(fp8(a, b, c, accumulate), fast);
          names.insert(k.str());
          keys.insert(k);
        }
  EXPECT_EQ(names.size(), 24u);
  EXPECT_EQ(keys.size(), 24u);
}

}  // namespace
}  // namespace hlat
