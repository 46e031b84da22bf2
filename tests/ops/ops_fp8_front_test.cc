// The front of the ops of FP8, on null ops: broken contracts are refused with their values, costs are counted, scratch is planned.
#include <gtest/gtest.h>

#include <functional>

#include "backend/null/null_ops.h"
#include "support/adamw_call.h"
#include "support/refused_calls.h"

namespace hlat {
namespace {

Tensor no_data(DType type, const Shape& shape) { return Tensor::contiguous(nullptr, type, shape); }
Tensor e4(const Shape& shape) { return no_data(DType::f8e4m3, shape); }
Tensor e5(const Shape& shape) { return no_data(DType::f8e5m2, shape); }
Tensor b16(const Shape& shape) { return no_data(DType::bf16, shape); }
Tensor s32(const Shape& shape) { return no_data(DType::f32, shape); }
Tensor d64(const Shape& shape) { return no_data(DType::f64, shape); }

Fp8Store store(const Tensor& rows, const Tensor& columns = {}) { return {rows, columns, s32({kFp8Scale}), d64({kFp8Seen})}; }
Fp8Operand factor(const Tensor& values) { return {values, s32({kFp8Scale})}; }

AdamwTensors fp8_update(DType master) {
  return {.weight = e4({5}),
          .master = no_data(master, {5}),
          .m = s32({5}),
          .v = s32({5}),
          .grad = s32({5}),
          .scale = s32({1}),
          .step = d64({kAdamwStep}),
          .weight_sq = d64({1}),
          .fp8_scale = s32({kFp8Scale}),
          .fp8_seen = d64({kFp8Seen})};
}

const std::vector<RefusedCall> kStores = {
    {"quantize: nothing to store",
     [](Ops& o) {
       o.quantize(store({}), b16({2, 3}));
     }},
    {"quantize: out is bf16, expected FP8",
     [](Ops& o) {
       o.quantize(store(b16({2, 3})), b16({2, 3}));
     }},
    {"quantize: rows is f8e4m3(3, 2), expected shape (2, 3)",
     [](Ops& o) {
       o.quantize(store(e4({3, 2})), b16({2, 3}));
     }},
    {"quantize: columns is f8e4m3(2, 3), expected shape (3, 2)",
     [](Ops& o) {
       o.quantize(store({}, e4({2, 3})), b16({2, 3}));
     }},
    {"quantize: columns is f8e5m2(3, 2), expected f8e4m3",
     [](Ops& o) {
       o.quantize(store(e4({2, 3}), e5({3, 2})), b16({2, 3}));
     }},
    {"quantize: x is f32(2, 3), expected bf16",
     [](Ops& o) {
       o.quantize(store(e4({2, 3})), s32({2, 3}));
     }},
    {"quantize: x is bf16(6), expected a matrix", [](Ops& o) { o.quantize(store(e4({6})), b16({6})); }},
    {"quantize: scale is f32(1), expected shape (8)",
     [](Ops& o) {
       o.quantize({e4({2, 3}), {}, s32({1}), {}}, b16({2, 3}));
     }},
    {"quantize: seen is f32(3), expected f64",
     [](Ops& o) {
       o.quantize({e4({2, 3}), {}, s32({kFp8Scale}), s32({3})}, b16({2, 3}));
     }},
    {"rmsnorm_fp8: y is f32(2, 3), expected bf16",
     [](Ops& o) {
       o.rmsnorm_fp8(store(e4({2, 3})), s32({2, 3}), s32({2}), b16({2, 3}), b16({3}), 0);
     }},
    {"add_rmsnorm_fp8: delta is bf16(2, 4), expected shape (2, 3)",
     [](Ops& o) {
       o.add_rmsnorm_fp8(store(e4({2, 3})), b16({2, 3}), {}, s32({2}), b16({2, 3}), b16({2, 4}), b16({3}), 0);
     }},
    {"adamw: weights of FP8 are f8e4m3, this one is f8e5m2(5)",
     [](Ops& o) {
       AdamwTensors t = fp8_update(DType::f32);
       t.weight = e5({5});
       adamw(o, t, {});
     }},
    {"swiglu_fp8: rows is f8e4m3(2, 6), expected shape (2, 3)",
     [](Ops& o) {
       o.swiglu_fp8(store(e4({2, 6})), {}, b16({2, 6}));
     }},
    {"swiglu_bwd_fp8: gu is bf16(2, 5), expected shape (2, 6)",
     [](Ops& o) {
       o.swiglu_bwd_fp8(store(e5({2, 6})), {}, b16({2, 3}), b16({2, 5}));
     }},
    {"quantize_flat: f64(5) to f8e4m3(5)", [](Ops& o) { o.quantize_flat(e4({5}), d64({5}), s32({kFp8Scale}), {}); }},
    {"quantize_flat: dst is f8e4m3(4), expected shape (5)", [](Ops& o) { o.quantize_flat(e4({4}), s32({5}), s32({kFp8Scale}), {}); }},
    {"transpose: x is bf16(2, 3), expected a matrix of FP8",
     [](Ops& o) {
       o.transpose(b16({3, 2}), b16({2, 3}));
     }},
    {"transpose: y is f8e4m3(2, 3), expected shape (3, 2)",
     [](Ops& o) {
       o.transpose(e4({2, 3}), e4({2, 3}));
     }},
    {"transpose: y is f8e5m2(3, 2), expected f8e4m3",
     [](Ops& o) {
       o.transpose(e5({3, 2}), e4({2, 3}));
     }},
    {"dequantize: x is f8e4m3(3, 2), expected shape (2, 3)",
     [](Ops& o) {
       o.dequantize(b16({2, 3}), e4({3, 2}), s32({kFp8Scale}));
     }},
    {"dequantize: y is f32(2, 3), expected bf16",
     [](Ops& o) {
       o.dequantize(s32({2, 3}), e4({2, 3}), s32({kFp8Scale}));
     }},
};

const std::vector<RefusedCall> kOthers = {
    {"matmul_fp8: a is bf16(16, 32), expected a matrix of FP8",
     [](Ops& o) {
       o.matmul_fp8(s32({16, 48}), factor(b16({16, 32})), factor(e4({48, 32})), {}, {});
     }},
    {"matmul_fp8: c f32(16, 48), a f8e4m3(16, 32), b f8e4m3(48, 64)^T",
     [](Ops& o) {
       o.matmul_fp8(s32({16, 48}), factor(e4({16, 32})), factor(e4({48, 64})), {}, {});
     }},
    {"matmul_fp8: c is f32(48, 16), expected shape (16, 48)",
     [](Ops& o) {
       o.matmul_fp8(s32({48, 16}), factor(e4({16, 32})), factor(e4({48, 32})), {}, {});
     }},
    {"matmul_fp8: 16 x 40 x 32 are no multiples of 16",
     [](Ops& o) {
       o.matmul_fp8(s32({16, 40}), factor(e4({16, 32})), factor(e4({40, 32})), {}, {});
     }},
    {"matmul_fp8: residual is bf16(16, 48), expected f32",
     [](Ops& o) {
       o.matmul_fp8(s32({16, 48}), factor(e4({16, 32})), factor(e4({48, 32})), b16({16, 48}), {});
     }},
    {"holds the residual",
     [](Ops& o) {
       o.matmul_fp8(s32({16, 48}), factor(e4({16, 32})), factor(e4({48, 32})), s32({16, 48}), {.accumulate = true});
     }},
    {"fp8_scales: history is f32(3, 15), expected shape (3, 16)",
     [](Ops& o) {
       o.fp8_scales(s32({3, kFp8Scale}), s32({3, 15}), d64({2, 3, kFp8Seen}), s32({3}), d64({kAdamwStep}));
     }},
    {"fp8_scales: seen is f64(2, 4, 3), expected shape (2, 3, 3)",
     [](Ops& o) {
       o.fp8_scales(s32({3, kFp8Scale}), s32({3, kFp8History}), d64({2, 4, kFp8Seen}), s32({3}), d64({kAdamwStep}));
     }},
    {"adamw: weight f8e4m3(5), master",
     [](Ops& o) {
       AdamwTensors t = fp8_update(DType::f32);
       t.master = {};
       adamw(o, t, {});
     }},
    {"adamw: master is bf16(6), expected shape (5)",
     [](Ops& o) {
       AdamwTensors t = fp8_update(DType::bf16);
       t.master = b16({6});
       adamw(o, t, {});
     }},
    {"adamw: fp8_scale is",
     [](Ops& o) {
       AdamwTensors t = fp8_update(DType::f32);
       t.fp8_scale = {};
       adamw(o, t, {});
     }},
    {"adamw: fp8_seen is",
     [](Ops& o) {
       AdamwTensors t = fp8_update(DType::f32);
       t.fp8_seen = d64({2});
       adamw(o, t, {});
     }},
    {"cast: src is f8e4m3(4), expected contiguous floats", [](Ops& o) { o.cast(s32({4}), e4({4})); }},
    {"largest: x is f8e4m3(4), expected contiguous floats", [](Ops& o) { o.largest(d64({1}), e4({4}), true); }},
};

TEST(OpsFp8Front, RefusesBrokenContracts) {
  expect_refused(kStores);
  expect_refused(kOthers);
}

TEST(OpsFp8Front, RefusesForbiddenAliases) {
  Region temp;
  NullOps ops(temp);
  std::array<float, 256> buffer{};
  const Tensor x = Tensor::contiguous(buffer.data(), DType::f8e4m3, {4, 4}), c = Tensor::contiguous(buffer.data(), DType::f32, {16, 16});
  EXPECT_THROW(ops.transpose(x, x), CheckFailed);
  EXPECT_THROW(ops.matmul_fp8(c, factor(e4({16, 32})), factor(e4({16, 32})), c, {}), CheckFailed);
}

TEST(OpsFp8Front, AcceptsBothMasters) {
  Region temp;
  NullOps ops(temp);
  for (const DType master : {DType::f32, DType::bf16}) adamw(ops, fp8_update(master), {});
  EXPECT_EQ(ops.cost()[OpKind::adamw].calls, 2);
  const std::array<AdamwItem, 2> mixed = {AdamwItem{fp8_update(DType::f32), {}}, AdamwItem{fp8_update(DType::bf16), {}}};
  EXPECT_THROW(ops.adamw(mixed), CheckFailed);
}

TEST(OpsFp8Front, CountsCost) {
  Region temp;
  NullOps ops(temp);
  ops.matmul_fp8(b16({16, 48}), factor(e5({16, 32})), factor(e4({48, 32})), b16({16, 48}), {});
  EXPECT_EQ(ops.cost()[OpKind::matmul].flops, 2 * 16 * 48 * 32);
  EXPECT_EQ(ops.cost()[OpKind::matmul].bytes, 16 * 32 + 48 * 32 + 2 * 2 * 16 * 48);
  ops.quantize(store(e4({2, 3}), e4({3, 2})), b16({2, 3}));
  EXPECT_EQ(ops.cost()[OpKind::quantize].bytes, 12 + 6 + 6);
  EXPECT_EQ(name_of(OpKind::quantize), "quantize");
}

class Fp8ScratchModel : public NullOps {
 public:
  using NullOps::NullOps;
  size_t fp8_scratch(int64_t elements) const override { return static_cast<size_t>(2 * elements); }
  size_t matmul_fp8_scratch(const MatmulShape& s) const override { return static_cast<size_t>(s.m * s.n * s.k); }
};

// A result that is asked for takes no scratch.
TEST(OpsFp8Front, ScratchIsOfTheResultThatNobodyAskedFor) {
  Region unused;
  const Fp8ScratchModel model(unused);
  const Tensor x = b16({10, 100}), w = b16({100}), rstd = s32({10});
  const std::vector<std::pair<size_t, std::function<void(Ops&)>>> calls = {
      {0,
       [&](Ops& o) {
         o.quantize(store(e4({10, 100})), x);
       }},
      {2048,
       [&](Ops& o) {
         o.rmsnorm_fp8(store(e4({10, 100})), {}, rstd, x, w, 0);
       }},
      {0,
       [&](Ops& o) {
         o.rmsnorm_fp8(store(e4({10, 100})), x, rstd, x, w, 0);
       }},
      {2048,
       [&](Ops& o) {
         o.add_rmsnorm_fp8(store(e4({10, 100})), x, {}, rstd, x, x, w, 0);
       }},
      {1024,
       [&](Ops& o) {
         o.swiglu_fp8(store(e4({10, 50})), {}, x);
       }},
      {4096,
       [&](Ops& o) {
         o.swiglu_bwd_fp8(store(e4({10, 200})), {}, x, b16({10, 200}));
       }},
      {8192,
       [&](Ops& o) {
         o.matmul_fp8(s32({16, 16}), factor(e4({16, 32})), factor(e4({16, 32})), {}, {});
       }},
  };
  for (const auto& [bytes, call] : calls) {
    Region temp;
    NullOps ops(temp, &model);
    call(ops);
    EXPECT_EQ(temp.high_water(), bytes);
    EXPECT_EQ(temp.mark(), 0u);
  }
}

}  // namespace
}  // namespace hlat
