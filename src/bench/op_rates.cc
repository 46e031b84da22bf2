#include "bench/op_rates.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "backend/null/null_ops.h"
#include "base/machine.h"
#include "base/median.h"
#include "bench/peak.h"
#include "comm/host_exchange.h"

namespace hlat {
namespace {

constexpr double kLeastTime = 0.004;  // seconds of calls in a row, for a figure

// The memory of the largest case, and its inputs.
class RatesBench {
 public:
  RatesBench(Backend& backend, const std::vector<OpCase>& cases)
      : backend_(backend), memory_(backend.device(), plan(backend, cases)), ops_(backend.make_ops(memory_.memory()[Purpose::temp])) {
    for (const Purpose p : {Purpose::saved, Purpose::io}) fill(p, planned_[p]);
  }

  // Seconds of a call; of the time, `calls` are in a row.
  double time(const OpCase& c, int& calls) {
    Memory& m = memory_.memory();
    const Scope inputs(m[Purpose::saved]), outputs(m[Purpose::io]);
    const PlacedOp op = c.place(m);
    for (const PlacedOp::HostData& d : op.uploads) backend_.device().upload(d.to, d.bytes.data());
    if (op.prepare) op.prepare(*ops_);
    if (calls == 0) {  // the first time: the kernel is made and chosen, then how many calls a figure needs
      op.call(*ops_);
      calls = std::clamp(static_cast<int>(std::ceil(kLeastTime / std::max(1e-7, seconds(op, 1)))), 1, 20000);
    }
    return seconds(op, calls) / calls;
  }

  double launch() {
    const Scope scope(memory_.memory()[Purpose::io]);
    const Tensor one = memory_.memory()[Purpose::io].alloc(DType::f32, {1}, "one");
    return seconds({.call = [one](Ops& ops) { ops.fill(one, 0); }}, 1000) / 1000;
  }

 private:
  double seconds(const PlacedOp& op, int calls) {
    ops_->finish();
    const double start = now_s();
    for (int i = 0; i < calls; ++i) op.call(*ops_);
    ops_->finish();
    return now_s() - start;
  }

  // Bits of bf16 normals are finite numbers of common size as f32, too.
  void fill(Purpose p, size_t bytes) {
    Region& region = memory_.memory()[p];
    const Scope scope(region);
    ops_->fill_normal(region.alloc(DType::bf16, {static_cast<int64_t>(bytes / 2)}, "all"), 1.0, {.seed = 3});
  }

  const MemoryPlan& plan(Backend& backend, const std::vector<OpCase>& cases) {
    Memory measuring;
    const auto model = backend.make_ops(measuring[Purpose::temp]);
    for (const OpCase& c : cases) {
      const Scope inputs(measuring[Purpose::saved]), outputs(measuring[Purpose::io]);
      NullOps null(measuring[Purpose::temp], model.get());
      const PlacedOp op = c.place(measuring);
      if (op.prepare) op.prepare(null);
      op.call(null);
    }
    planned_ = measuring.high_water();
    size_t& io = planned_.bytes[static_cast<size_t>(Purpose::io)];
    io = std::max(io, kAlign);
    return planned_;
  }

  Backend& backend_;
  MemoryPlan planned_;
  PlannedMemory memory_;
  std::unique_ptr<Ops> ops_;
};

double over_ranks(Comm& world, double value) {
  const std::vector<double> all = all_gather_values(world, value);
  return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
}

void add_row(Rates& rates, const OpCase& c, double seconds) {
  const TracedOp& o = c.traced;
  const auto flops = [&] { return rounded_quantity(o.flops / seconds, Unit::flops_per_s); };
  const auto type = static_cast<DType>(o.dtype);
  if (c.kind == OpKind::matmul)
    rates.matmul.push_back({type, static_cast<DType>(o.out), o.form, o.dims[0], o.dims[1], o.dims[2], flops()});
  else if (c.kind == OpKind::attention || c.kind == OpKind::attention_bwd)
    rates.attention.push_back({c.kind == OpKind::attention_bwd, type, o.dims[0], o.dims[1], o.dims[2], flops()});
  else
    rates.memory_ops.push_back({c.kind, c.type, o.bytes, rounded_quantity(o.bytes / seconds, Unit::bytes_per_s)});
}

// Without those that are too large, and each once.
std::vector<OpCase> kept_cases(std::vector<OpCase> cases, const OpRatesOptions& options, double flops, double copy) {
  std::vector<OpCase> kept;
  for (OpCase& c : cases) {
    const size_t bytes = trace_case(c);
    const double expected = std::max(c.traced.flops / flops, c.traced.bytes / copy);
    const bool known = std::any_of(kept.begin(), kept.end(), [&](const OpCase& k) { return k.traced == c.traced; });
    if (bytes <= options.most_bytes && (c.needed || expected <= options.most_seconds) && !known) kept.push_back(std::move(c));
  }
  return kept;
}

}  // namespace

OpRatesFound measure_op_rates(Backend& backend, Comm& world, std::vector<OpCase> cases, const OpRatesOptions& options) {
  OpRatesFound found;
  const size_t given = cases.size();
  {
    HLAT_CHECK(!cases.empty(), "no ops to measure");
    MatmulRate large(backend, cases.front().type);
    large.measure(std::max(options.warm_up, 0.2));
    found.matmul_peak = over_ranks(world, large.median());
  }
  const double copy = over_ranks(world, measure_copy(backend));
  cases = kept_cases(std::move(cases), options, found.matmul_peak, copy);
  found.cases = cases.size();
  found.left_out = given - cases.size();
  HLAT_CHECK(!cases.empty(), "all {} ops are too large", given);
  RatesBench bench(backend, cases);
  std::vector<std::vector<double>> times(cases.size());
  std::vector<int> calls(cases.size(), 0);
  std::vector<double> launches;
  // Kernels are made, and on a GPU chosen by measurements of their own, before the time begins.
  for (size_t i = 0; i < cases.size(); ++i) bench.time(cases[i], calls[i]);
  world.barrier();
  const double end = now_s() + options.seconds;
  double round = 0;  // seconds of the one before
  do {
    const double start = now_s();
    world.barrier();
    for (size_t i = 0; i < cases.size(); ++i) times[i].push_back(bench.time(cases[i], calls[i]));
    launches.push_back(bench.launch());
    round = now_s() - start;
    ++found.rounds;
  } while (broadcast_value(world, now_s() + round < end, 0));
  for (size_t i = 0; i < cases.size(); ++i) add_row(found.rates, cases[i], over_ranks(world, median(times[i])));
  found.rates.launch.value = over_ranks(world, median(launches));
  for (const MatmulRow& r : found.rates.matmul) {
    double& peak = is_fp8(r.type) ? found.fp8_peak : found.matmul_peak;
    peak = std::max(peak, r.flops_per_s);
  }
  return found;
}

}  // namespace hlat
