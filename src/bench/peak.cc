#include "bench/peak.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "backend/null/null_ops.h"
#include "base/median.h"

namespace hlat {

namespace {

// Larger than the caches of a core, small enough for many repetitions; a device that is through with it in a millisecond needs the
// larger one to show its rate.
constexpr int64_t kSize = 1536, kLarge = 8192;

// FP8 operands have a product in bf16, and the scale 1.
struct Operands {
  Tensor c, a, b, scale;
  bool fp8() const { return scale.defined(); }
};

Operands place(Memory& memory, DType dtype, int64_t size) {
  Region& temp = memory[Purpose::temp];
  const auto square = [&](DType type) { return temp.alloc(type, {size, size}, "matmul"); };
  Operands t{.c = square(is_fp8(dtype) ? DType::bf16 : dtype), .a = square(dtype), .b = square(dtype), .scale = {}};
  if (is_fp8(dtype)) t.scale = temp.alloc(DType::f32, {kFp8Scale}, "scale");
  return t;
}

void multiply(Ops& ops, const Operands& t) {
  if (t.fp8()) return ops.matmul_fp8(t.c, {t.a, t.scale}, {t.b, t.scale}, {}, {.fast_sums = true});
  ops.matmul(t.c, t.a, t.b, {.trans_b = true});
}

void fill(Ops& ops, const Operands& t) {
  if (t.fp8()) ops.fill(t.scale, 1);
  for (uint64_t seed = 1; const Tensor& x : {t.a, t.b}) {
    ops.fill_normal(t.fp8() ? t.c : x, 1.0, {.seed = seed++});
    if (t.fp8()) ops.quantize_flat(x.viewed({x.numel()}), t.c.viewed({x.numel()}), t.scale, {});
  }
}

// The same code measures its memory first, as every step does.
MemoryPlan plan(Backend& backend, DType dtype, int64_t size) {
  Memory memory;
  const auto model = backend.make_ops(memory[Purpose::temp]);
  const Operands t = place(memory, dtype, size);
  NullOps ops(memory[Purpose::temp], model.get());
  multiply(ops, t);
  return memory.high_water();
}

// The best of three runs of copies in a row: waiting for one takes as long as a part of it.
double copy_rate(Backend& backend, int64_t elements) {
  constexpr int kTimes = 3;
  constexpr double kSeconds = 0.05;
  MemoryPlan both;
  both.bytes[static_cast<size_t>(Purpose::temp)] = 2 * static_cast<size_t>(elements) * sizeof(float);
  PlannedMemory memory(backend.device(), both);
  Region& temp = memory.memory()[Purpose::temp];
  const Tensor from = temp.alloc(DType::f32, {elements}, "copy from"), to = temp.alloc(DType::f32, {elements}, "copy to");
  const auto ops = backend.make_ops(temp);
  const auto seconds = [&](int copies) {
    ops->finish();
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < copies; ++i) ops->cast(to, from);
    ops->finish();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  ops->fill(from, 1);
  seconds(1);  // touches the memory
  const int copies = std::max(1, static_cast<int>(kSeconds / seconds(1)));
  double best = 0;
  for (int i = 0; i < kTimes; ++i) best = std::max(best, copies * static_cast<double>(from.bytes() + to.bytes()) / seconds(copies));
  return best;
}

}  // namespace

struct MatmulRate::Buffers {
  int64_t size;
  PlannedMemory memory;
  std::unique_ptr<Ops> ops;
  Operands t;

  Buffers(Backend& backend, DType dtype, int64_t edge)
      : size(edge),
        memory(backend.device(), plan(backend, dtype, edge)),
        ops(backend.make_ops(memory.memory()[Purpose::temp])),
        t(place(memory.memory(), dtype, edge)) {
    fill(*ops, t);
    run();  // makes the library's kernel
  }
  double run() {  // seconds
    const auto start = std::chrono::steady_clock::now();
    multiply(*ops, t);
    ops->finish();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
};

MatmulRate::MatmulRate(Backend& backend, DType dtype) : buffers_(std::make_unique<Buffers>(backend, dtype, kSize)) {
  if (buffers_->run() < 1e-3) buffers_ = std::make_unique<Buffers>(backend, dtype, kLarge);
}
MatmulRate::~MatmulRate() = default;

void MatmulRate::measure(double seconds) {
  const double flops = 2.0 * std::pow(static_cast<double>(buffers_->size), 3);
  for (double total = 0; total < seconds;) {
    const double s = buffers_->run();
    total += s;
    rates_.push_back(flops / s);
    best_ = std::max(best_, rates_.back());
  }
}

double MatmulRate::median() const {
  HLAT_CHECK(!rates_.empty(), "nothing was measured");
  return upper_median(rates_);
}

std::vector<DType> product_types(const Precision& precision) {
  std::vector<DType> types = {DType::f32};
  if (precision.compute == DType::bf16) types.push_back(DType::bf16);
  if (precision.fp8) types.push_back(DType::f8e4m3);
  return types;
}

double measure_peak(Backend& backend, const Precision& precision) {
  constexpr double kSeconds = 0.5;
  double best = 0;
  for (const DType dtype : product_types(precision)) {
    MatmulRate rate(backend, dtype);
    rate.measure(kSeconds);
    best = std::max(best, rate.best());
  }
  return best;
}

double measure_copy(Backend& backend) {
  constexpr int64_t kElements = int64_t{64} << 20, kMore = int64_t{256} << 20;  // of f32
  const double rate = copy_rate(backend, kElements);
  const bool fast = 2.0 * kElements * sizeof(float) / rate < 1e-3;  // then beginning and end of a copy count
  return fast && backend.device().memory_available() > 4 * kMore * sizeof(float) ? copy_rate(backend, kMore) : rate;
}

}  // namespace hlat
