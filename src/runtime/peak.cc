#include "runtime/peak.h"

#include <algorithm>
#include <chrono>

#include "backend/null/null_ops.h"

namespace hlat {

namespace {

constexpr int64_t kSize = 1536;  // larger than the caches of a core, small enough for many repetitions

using Operands = std::array<Tensor, 3>;

Operands place(Memory& memory, DType dtype) {
  Operands t;
  for (Tensor& x : t) x = memory[Purpose::temp].alloc(dtype, {kSize, kSize}, "matmul");
  return t;
}

// The same code measures its memory first, as every step does.
MemoryPlan plan(Backend& backend, DType dtype) {
  Memory memory;
  const auto model = backend.make_ops(memory[Purpose::temp]);
  const Operands t = place(memory, dtype);
  NullOps(memory[Purpose::temp], model.get()).matmul(t[0], t[1], t[2], {.trans_b = true});
  return memory.high_water();
}

}  // namespace

struct MatmulRate::Buffers {
  PlannedMemory memory;
  std::unique_ptr<Ops> ops;
  Operands t;

  Buffers(Backend& backend, DType dtype)
      : memory(backend.device(), plan(backend, dtype)),
        ops(backend.make_ops(memory.memory()[Purpose::temp])),
        t(place(memory.memory(), dtype)) {
    ops->fill_normal(t[1], 1.0, {.seed = 1});
    ops->fill_normal(t[2], 1.0, {.seed = 2});
    run();  // makes the library's kernel
  }
  void run() { ops->matmul(t[0], t[1], t[2], {.trans_b = true}); }
};

MatmulRate::MatmulRate(Backend& backend, DType dtype) : buffers_(std::make_unique<Buffers>(backend, dtype)) {}
MatmulRate::~MatmulRate() = default;

void MatmulRate::measure(double seconds) {
  using Clock = std::chrono::steady_clock;
  for (double total = 0; total < seconds;) {
    const auto start = Clock::now();
    buffers_->run();
    const double s = std::chrono::duration<double>(Clock::now() - start).count();
    total += s;
    rates_.push_back(2.0 * kSize * kSize * kSize / s);
    best_ = std::max(best_, rates_.back());
  }
}

double MatmulRate::median() const {
  HLAT_CHECK(!rates_.empty(), "nothing was measured");
  std::vector<double> sorted = rates_;
  std::sort(sorted.begin(), sorted.end());
  return sorted[sorted.size() / 2];
}

double measure_peak(Backend& backend, DType compute) {
  constexpr double kSeconds = 0.5;
  double best = 0;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    if (dtype == DType::bf16 && compute != DType::bf16) continue;
    MatmulRate rate(backend, dtype);
    rate.measure(kSeconds);
    best = std::max(best, rate.best());
  }
  return best;
}

}  // namespace hlat
