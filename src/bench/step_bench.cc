#include "bench/step_bench.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/median.h"
#include "bench/bench_model.h"
#include "bench/peak.h"
#include "config/precision_row.h"
#include "record/utilization.h"

namespace hlat {

namespace {

void scale(OpCost& c, double factor) {
  c.calls = static_cast<int64_t>(static_cast<double>(c.calls) * factor);
  c.flops *= factor;
  c.bytes *= factor;
  c.seconds *= factor;
}

// What was counted over all steps becomes that of one.
void scale_to_a_step(StepBench& b) {
  const auto steps = static_cast<double>(b.steps);
  for (OpCost& c : b.ops.op) scale(c, 1.0 / steps);
  for (auto& [name, c] : b.ops.matmuls) scale(c, 1.0 / steps);
  for (AxisTraffic& a : b.traffic)
    for (CommCost& c : a.traffic.kind) {
      c.calls /= b.steps;
      c.bytes /= steps;
      c.seconds /= steps;
    }
}

// Of the types that the policy multiplies.
class MatmulRates {
 public:
  MatmulRates(const Config& config, Backend& backend) {
    for (const DType type : product_types(precision_of(config))) rates_.try_emplace(type, backend, type);
  }
  void measure() {
    constexpr double kSeconds = 0.3;
    for (auto& [type, rate] : rates_) rate.measure(kSeconds);
  }
  void tell(const Mesh& mesh, StepBench& b) const {
    double rate = 0, wide = 0;
    for (const auto& [type, own] : rates_) {
      if (!is_fp8(type)) wide = std::max(wide, own.median());
      if (own.median() <= rate) continue;
      rate = own.median();
      b.peak_type = type;
    }
    b.peak_flops = sum_over(mesh, rate);
    b.best_flops = sum_over(mesh, rates_.at(b.peak_type).best());
    b.wide_flops = sum_over(mesh, wide);
  }

 private:
  std::map<DType, MatmulRate> rates_;
};

// Seconds of each of b.steps steps, with the rates measured in between.
std::vector<double> time_steps(BenchModel& model, Comm& world, MatmulRates& rates, StepBench& b) {
  std::vector<double> times;
  rates.measure();
  model.mesh().reset_traffic();
  for (int64_t i = 0; i < b.steps; ++i) {
    StepResult r;
    times.push_back(model.timed([&] { r = model.run(2 + i); }));
    b.comm_s += r.comm_s / static_cast<double>(b.steps);
    b.comm_wait_s += r.comm_wait_s / static_cast<double>(b.steps);
    world.barrier();
    rates.measure();
  }
  b.traffic = traffic_of(model.mesh());
  return times;
}

}  // namespace

StepBench bench_step(const Config& config, Backend& backend, Comm& world, int local_ranks, int64_t steps, bool per_op) {
  StepBench b;
  b.steps = steps;
  b.per_op = per_op;
  Assembly assembly(config, backend, world, local_ranks);
  const RankPlan& plan = assembly.plan();
  MatmulRates rates(config, backend);
  BenchModel model(assembly, config, world);
  const Mesh& mesh = model.mesh();
  Ops& ops = model.placed().ops();
  b.machine = assembly.describe();
  b.mesh = mesh.shape();
  model.run(1);  // touches the memory, makes the library's kernels
  ops.reset_cost();
  ops.set_timing(per_op);
  const std::vector<double> times = time_steps(model, world, rates, b);
  rates.tell(mesh, b);
  b.hfu = sum_over(mesh, plan.executed_flops()) / b.peak_flops / median(times);
  b.step_s = median(times);
  ops.collect_times();
  b.ops = ops.cost();
  b.used_bytes = model.placed().high_water().total();
  scale_to_a_step(b);
  b.tokens_per_step = plan.tokens;
  if (per_op) b.copy_bytes = measure_copy(backend);
  b.planned_bytes = plan.memory.total();
  b.tokens_per_s = static_cast<double>(plan.tokens) / b.step_s;
  b.mfu = b.tokens_per_s * plan.flops_per_token / b.peak_flops;
  return b;
}

namespace {

std::string comm_text(const StepBench& b) {
  if (b.mesh.ranks() == 1) return {};
  std::string s = fmt::format("ranks          {}: tp {} x pp {} x dp {}\n", b.mesh.ranks(), b.mesh.tp, b.mesh.pp, b.mesh.dp);
  s += fmt::format("communication  {:.3f} s per step on rank 0, {:.3f} s of it waited for, {:.0f}% hidden under computation\n\n", b.comm_s,
                   b.comm_wait_s, b.comm_s > 0 ? 100 * (1 - b.comm_wait_s / b.comm_s) : 0);
  s += fmt::format("{:<8} {:>6} {:<16} {:>8} {:>12} {:>10}\n", "axis", "ranks", "", "calls", "sent", "ms");
  for (const AxisTraffic& a : b.traffic)
    for (int k = 0; k < kCommKinds; ++k) {
      const CommCost& c = a.traffic.kind[static_cast<size_t>(k)];
      if (a.size > 1 && c.calls > 0)
        s += fmt::format("{:<8} {:>6} {:<16} {:>8} {:>12} {:>10.2f}\n", a.axis, a.size, name_of(static_cast<CommKind>(k)), c.calls,
                         format_bytes(static_cast<uint64_t>(c.bytes)), c.seconds * 1e3);
    }
  return s;
}

}  // namespace

std::string bench_text(const Config& config, const StepBench& b) {
  std::string s = fmt::format("{}\n", b.machine);
  s += fmt::format("matmul rate    {:.1f} GFLOP/s of {}, median of repetitions between the steps; best {:.1f}\n", b.peak_flops * 1e-9,
                   name_of(b.peak_type), b.best_flops * 1e-9);
  if (b.wide_flops < b.peak_flops) s += fmt::format("               {:.1f} GFLOP/s of products that are not FP8\n", b.wide_flops * 1e-9);
  s += fmt::format("step           {:.3f} s, {}; {} tokens, precision {}, recompute {}\n", b.step_s,
                   b.steps > 1 ? fmt::format("median of {}", b.steps) : "one step", b.tokens_per_step, precision_words(config),
                   config.train.recompute.str());
  s += fmt::format("speed          {}\n", speed_text(b.tokens_per_s, b.mfu, b.hfu));
  s += fmt::format("memory         planned {}, used {}\n", format_bytes(b.planned_bytes), format_bytes(b.used_bytes));
  s += comm_text(b);
  if (!b.per_op) return s;
  s += fmt::format("copy rate      {:.1f} GB/s, read and written\n", b.copy_bytes * 1e-9);
  s += fmt::format("\n{:<32} {:>7} {:>10} {:>7} {:>10} {:>9} {:>15}\n", "op", "calls", "ms", "share", "GFLOP/s", "GB/s", "of its ceiling");
  // The ceiling of an op is the one it comes nearer to: the matmul rate for its arithmetic, the copy rate for its bytes.
  const auto of_rank = [&](double flops) { return flops / static_cast<double>(b.mesh.ranks()); };
  const auto row = [&](std::string_view name, const OpCost& c, double matmul_rate) {
    if (c.calls == 0) return;
    const double flops = c.flops / c.seconds, bytes = c.bytes / c.seconds;
    const bool computes = flops / matmul_rate > bytes / b.copy_bytes;
    s += fmt::format("{:<32} {:>7} {:>10.2f} {:>6.1f}% {:>10.1f} {:>9.1f} {:>7} {:>6.1f}%\n", name, c.calls, c.seconds * 1e3,
                     100 * c.seconds / b.step_s, flops * 1e-9, bytes * 1e-9, computes ? "matmul" : "copy",
                     100 * (computes ? flops / matmul_rate : bytes / b.copy_bytes));
  };
  for (int k = 0; k < kOpKinds; ++k) {
    const auto kind = static_cast<OpKind>(k);
    row(name_of(kind), b.ops.op[static_cast<size_t>(k)], of_rank(kind == OpKind::matmul ? b.peak_flops : b.wide_flops));
  }
  for (const auto& [name, c] : b.ops.matmuls)
    row("  matmul " + name, c, of_rank(std::string_view(name).ends_with("fp8") ? b.peak_flops : b.wide_flops));
  return s;
}

nlohmann::ordered_json bench_json(const Config& config, const StepBench& b) {
  nlohmann::ordered_json j{{"machine", b.machine},
                           {"precision", precision_words(config)},
                           {"recompute", config.train.recompute.str()},
                           {"tokens_per_step", b.tokens_per_step},
                           {"step_s", b.step_s},
                           {"tokens_per_s", b.tokens_per_s},
                           {"mfu", is_utilization(b.mfu) ? nlohmann::ordered_json(b.mfu) : nlohmann::ordered_json()},
                           {"hfu", is_utilization(b.hfu) ? nlohmann::ordered_json(b.hfu) : nlohmann::ordered_json()},
                           {"peak_flops", b.peak_flops},
                           {"peak_type", name_of(b.peak_type)},
                           {"best_flops", b.best_flops},
                           {"planned_bytes", b.planned_bytes},
                           {"used_bytes", b.used_bytes},
                           {"ranks", b.mesh.ranks()},
                           {"comm_s", b.comm_s},
                           {"comm_wait_s", b.comm_wait_s}};
  for (const AxisTraffic& a : b.traffic)
    if (a.size > 1) j["bytes_sent"][a.axis] = a.traffic.bytes_sent();
  if (!b.per_op) return j;
  j["copy_bytes_per_s"] = b.copy_bytes;
  const auto add = [&](const std::string& name, const OpCost& c) {
    if (c.calls > 0) j["ops"][name] = {{"calls", c.calls}, {"seconds", c.seconds}, {"flops", c.flops}, {"bytes", c.bytes}};
  };
  for (int k = 0; k < kOpKinds; ++k) add(std::string(name_of(static_cast<OpKind>(k))), b.ops.op[static_cast<size_t>(k)]);
  for (const auto& [name, c] : b.ops.matmuls) add("matmul " + name, c);
  return j;
}

}  // namespace hlat
