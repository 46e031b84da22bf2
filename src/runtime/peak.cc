#include "runtime/peak.h"

#include <algorithm>
#include <chrono>

#include "backend/null/null_ops.h"

namespace hlat {

double measure_matmul_rate(Backend& backend, DType dtype) {
  constexpr int64_t n = 1536;
  constexpr int kMinRuns = 8;
  constexpr double kMinSeconds = 0.6;
  // The same code measures its memory first, as every step does.
  const auto place = [&](Memory& memory, std::array<Tensor, 3>& t) {
    for (Tensor& x : t) x = memory[Purpose::temp].alloc(dtype, {n, n}, "matmul");
  };
  std::array<Tensor, 3> t;
  Memory measuring;
  {
    const auto model = backend.make_ops(measuring[Purpose::temp]);
    place(measuring, t);
    NullOps(measuring[Purpose::temp], model.get()).matmul(t[0], t[1], t[2], {.trans_b = true});
  }
  PlannedMemory planned(backend.device(), measuring.high_water());
  const auto ops = backend.make_ops(planned.memory()[Purpose::temp]);
  place(planned.memory(), t);
  ops->fill_normal(t[1], 1.0, {.seed = 1});
  ops->fill_normal(t[2], 1.0, {.seed = 2});
  using Clock = std::chrono::steady_clock;
  double best = 0, total = 0;
  for (int run = 0; run < kMinRuns || total < kMinSeconds; ++run) {
    const auto start = Clock::now();
    ops->matmul(t[0], t[1], t[2], {.trans_b = true});
    const double s = std::chrono::duration<double>(Clock::now() - start).count();
    total += s;
    if (run > 0) best = std::max(best, 2.0 * n * n * n / s);
  }
  return best;
}

double measure_peak(Backend& backend, DType compute) {
  const double f32 = measure_matmul_rate(backend, DType::f32);
  return compute == DType::bf16 ? std::max(f32, measure_matmul_rate(backend, DType::bf16)) : f32;
}

}  // namespace hlat
