#include "bench/step_rates.h"

#include <algorithm>
#include <array>

#include "bench/step_bench.h"
#include "comm/host_exchange.h"
#include "config/validate.h"
#include "plan/dry_run.h"
#include "plan/machine_clock.h"

namespace hlat {
namespace {

constexpr int64_t kStepsRun = 3;

enum Family : size_t { kProductsFamily, kAttentionFamily, kOthersFamily, kFamilies };
using FamilySeconds = std::array<double, kFamilies>;

Family family(OpKind kind) {
  if (kind == OpKind::matmul) return kProductsFamily;
  return kind == OpKind::attention || kind == OpKind::attention_bwd ? kAttentionFamily : kOthersFamily;
}

struct Predicted {
  FamilySeconds ops{};
  double calls = 0;  // seconds of collectives over tp
  int64_t count = 0;
};

Predicted predict(const Config& config, const Machine& machine) {
  StepTrace trace;
  dry_run(config, {}, 0, &trace);
  const MachineClock clock(machine, layout_of(config));
  Predicted p;
  for (const TraceEntry& e : trace.entries()) {
    if (e.kind == TraceKind::op) {
      const TracedOp& op = trace.ops()[e.index];
      p.ops[family(static_cast<OpKind>(op.kind))] += clock.op(op);
    } else if (e.kind == TraceKind::call && trace.calls()[e.index].group == static_cast<uint8_t>(Axis::tp)) {
      p.calls += clock.call(trace.calls()[e.index]);
      ++p.count;
    }
  }
  return p;
}

FamilySeconds seconds_of(const Cost& cost) {
  FamilySeconds s{};
  for (int k = 0; k < kOpKinds; ++k) s[family(static_cast<OpKind>(k))] += cost.op[static_cast<size_t>(k)].seconds;
  return s;
}

double mean_over(Comm& world, double value) {
  double sum = 0;
  for (const double v : all_gather_values(world, value)) sum += v;
  return sum / world.size();
}

Config on_mesh(Config config, int64_t tp, int64_t dp) {
  config.parallel = {.tp = tp, .pp = 1, .dp = dp, .comm = config.parallel.comm};
  config.train.global_batch =
      std::max<int64_t>(1, config.train.global_batch / (dp * config.train.micro_batch)) * dp * config.train.micro_batch;
  return config;
}

}  // namespace

StepRates measure_step_rates(const Config& config, Backend& backend, Comm& world, int local_ranks, const Machine& machine) {
  StepRates rates;
  {
    const Config copies = on_mesh(config, 1, world.size());
    const FamilySeconds ran = seconds_of(bench_step(copies, backend, world, local_ranks, kStepsRun, true).ops);
    const FamilySeconds alone = predict(copies, machine).ops;
    const auto ratio = [&](Family f) { return alone[f] > 0 ? mean_over(world, ran[f]) / alone[f] : 1; };
    rates = {.products = ratio(kProductsFamily), .attention = ratio(kAttentionFamily), .others = ratio(kOthersFamily)};
  }
  const Config split = on_mesh(config, world.size(), 1);
  if (world.size() == 1 || !validate(split).empty()) return rates;
  const double waited = bench_step(split, backend, world, local_ranks, kStepsRun, true).comm_wait_s;
  const Predicted calls = predict(split, machine);
  if (calls.count > 0) rates.late = std::max(0.0, (mean_over(world, waited) - calls.calls) / static_cast<double>(calls.count));
  return rates;
}

ThreadShares measure_thread_shares(const Config& config, Backend& backend, Comm& self, int threads, const Machine& machine) {
  Config alone = on_mesh(config, 1, 1);
  alone.device.threads = threads;
  const FamilySeconds ran = seconds_of(bench_step(alone, backend, self, 1, kStepsRun, true).ops);
  const FamilySeconds proportional = predict(alone, machine).ops;
  const auto share = [&](Family f) { return ran[f] > 0 && proportional[f] > 0 ? std::min(1.0, proportional[f] / ran[f]) : 1; };
  return {.threads = threads, .products = share(kProductsFamily), .attention = share(kAttentionFamily), .others = share(kOthersFamily)};
}

void apply(const StepRates& rates, Machine& machine) {
  for (MatmulRow& r : machine.rates.matmul) r.flops_per_s = rounded_quantity(r.flops_per_s / rates.products, Unit::flops_per_s);
  for (AttentionRow& r : machine.rates.attention) r.flops_per_s = rounded_quantity(r.flops_per_s / rates.attention, Unit::flops_per_s);
  for (MemoryRow& r : machine.rates.memory_ops) r.bytes_per_s = rounded_quantity(r.bytes_per_s / rates.others, Unit::bytes_per_s);
  for (CollectiveRow& r : machine.links.measured)
    if (r.op != CommKind::send) r.seconds = rounded_quantity(r.seconds + rates.late, Unit::seconds);
}

}  // namespace hlat
