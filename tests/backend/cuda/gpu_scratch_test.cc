// What a plan for a GPU takes as scratch without one against what the cuda backend takes: exact where it is our own function, and where a
// library decides the record holds for the libraries it was made with.
#include "backend/null/gpu_scratch_ops.h"

#include <gtest/gtest.h>

#include "ops/gpu_scratch.h"
#include "support/test_device.h"

namespace hlat {
namespace {

// Ampere has no products of FP8: both operands lie there in bf16.
TEST(GpuScratchOfFp8, HoldsBothOperandsWhereTheGpuDoesNotMultiplyThem) {
  Region measuring;
  const MatmulShape s{.m = 4096, .n = 48, .k = 112, .trans_b = true, .a = DType::f8e4m3, .b = DType::f8e5m2, .c = DType::f32};
  const auto scratch = [&](int capability) {
    return GpuScratchOps(measuring, gpu_of_capability("a GPU", capability)).matmul_fp8_scratch(s);
  };
  EXPECT_EQ(scratch(90), gpu_matmul_scratch(s));
  EXPECT_EQ(scratch(89), scratch(90));
  EXPECT_EQ(scratch(100), scratch(90));
  const size_t b = 42 * kAlign;  // 48 x 112 of two bytes
  EXPECT_EQ(scratch(80), scratch(90) + 4096 * 112 * 2 + b);
  EXPECT_EQ(scratch(86), scratch(80));
}

#ifdef HLAT_HAVE_CUDA

class GpuScratchOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
    backend_ = std::make_unique<CudaBackend>(CudaOptions{});
    real_ = backend_->make_ops(measuring_);
    planned_ = std::make_unique<GpuScratchOps>(measuring_, gpu_facts(0));
  }

  Region measuring_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Ops> real_, planned_;
};

TEST_F(GpuScratchOnGpu, OwnFunctionsAreTheSame) {
  for (const int64_t m : {0, 1, 100, 4096, 32768})
    for (const int64_t n : {1, 256, 12288}) {
      const MatmulShape s{.m = m, .n = n, .k = 512, .a = DType::bf16, .b = DType::bf16, .c = DType::f32};
      EXPECT_EQ(planned_->matmul_scratch(s), real_->matmul_scratch(s));
      EXPECT_EQ(planned_->matmul_fp8_scratch(s), real_->matmul_fp8_scratch(s));
      EXPECT_EQ(planned_->rmsnorm_bwd_scratch(m, n), real_->rmsnorm_bwd_scratch(m, n));
      EXPECT_EQ(planned_->reduce_scratch(m * n), real_->reduce_scratch(m * n));
      const CacheShape c{.heads = 32, .kv_heads = 8, .head_dim = 128, .max_queries = 4, .max_keys = m + 1};
      EXPECT_EQ(planned_->cache_attention_scratch(n, 1, c, DType::bf16), real_->cache_attention_scratch(n, 1, c, DType::bf16));
    }
}

TEST_F(GpuScratchOnGpu, AttentionIsAsPlanned) {
  for (const int64_t head : {32, 64, 96, 128, 256})
    for (const int64_t seq : {100, 1024, 4096, 8192})
      for (const int64_t batch : {1, 4})
        for (const bool backward : {false, true})
          for (const DType dtype : {DType::bf16, DType::f32}) {
            if (dtype == DType::f32 && head > 128 && backward) continue;  // refused on GPUs with little shared memory
            const AttentionShape s{.batch = batch, .seq = seq, .heads = 16, .kv_heads = 4, .head_dim = head};
            EXPECT_EQ(planned_->attention_scratch(s, dtype, backward), real_->attention_scratch(s, dtype, backward))
                << batch << " x " << seq << ", head " << head << ", " << name_of(dtype) << (backward ? " backward" : "");
          }
}

TEST_F(GpuScratchOnGpu, TheSortIsAsRecorded) {
  for (const int64_t tokens : {1, 100, 1024, 5000, 16384, 32768, 100000, 262144})
    EXPECT_EQ(planned_->embed_bwd_scratch(tokens, 512), real_->embed_bwd_scratch(tokens, 512)) << tokens;
}

#endif

}  // namespace
}  // namespace hlat
