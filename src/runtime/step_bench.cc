#include "runtime/step_bench.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "data/corpus.h"
#include "data/lanes.h"
#include "plan/dry_run.h"
#include "runtime/peak.h"
#include "train/step_runner.h"

namespace hlat {

namespace {

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return (v[(v.size() - 1) / 2] + v[v.size() / 2]) / 2;
}

void scale(OpCost& c, double factor) {
  c.calls = static_cast<int64_t>(static_cast<double>(c.calls) * factor);
  c.flops *= factor;
  c.bytes *= factor;
  c.seconds *= factor;
}

}  // namespace

StepBench bench_step(const Config& config, Backend& backend, int64_t steps, bool per_op) {
  const DType compute = precision_of(config.train.precision).compute;
  StepBench b;
  b.machine = backend.describe();
  b.steps = steps;
  b.per_op = per_op;
  Region measuring;
  const auto scratch_model = backend.make_ops(measuring);
  const Plan plan = dry_run(config, scratch_model.get());
  // bf16 steps are held against the faster of both types: without bf16 instructions that is f32.
  MatmulRate f32(backend, DType::f32);
  std::unique_ptr<MatmulRate> bf16 = compute == DType::bf16 ? std::make_unique<MatmulRate>(backend, DType::bf16) : nullptr;
  const auto measure_rate = [&] {
    constexpr double kSeconds = 0.3;
    f32.measure(kSeconds);
    if (bf16) bf16->measure(kSeconds);
  };
  {
    PlannedMemory planned(backend.device(), plan.memory);
    const auto ops = backend.make_ops(planned.memory()[Purpose::temp]);
    StepRunner runner(config, precision_of(config.train.precision), planned.memory(), *ops, &backend.device());
    runner.init_weights();
    const EmbeddedCorpus corpus(config.data.seed);
    Lanes lanes(corpus, config.train.global_batch, config.train.seq_len);
    const auto fill = [&](int64_t micro, int32_t* in, int32_t* out) {
      lanes.next(micro * config.train.micro_batch, config.train.micro_batch, in, out);
    };
    runner.step(1, 1e-4, fill);  // touches the memory, makes the library's kernels
    ops->reset_cost();
    ops->set_timing(per_op);
    std::vector<double> times;
    measure_rate();
    for (int64_t i = 0; i < steps; ++i) {
      const auto start = std::chrono::steady_clock::now();
      runner.step(2 + i, 1e-4, fill);
      times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      measure_rate();
    }
    b.step_s = median(times);
    b.ops = ops->cost();
    b.used_bytes = planned.memory().high_water().total();
  }
  for (OpCost& c : b.ops.op) scale(c, 1.0 / static_cast<double>(steps));
  for (auto& [name, c] : b.ops.matmuls) scale(c, 1.0 / static_cast<double>(steps));
  const MatmulRate& rate = bf16 && bf16->median() > f32.median() ? *bf16 : f32;
  b.peak_flops = rate.median();
  b.best_flops = rate.best();
  b.tokens_per_step = plan.tokens_per_step;
  b.planned_bytes = plan.memory.total();
  b.tokens_per_s = static_cast<double>(plan.tokens_per_step) / b.step_s;
  b.mfu = b.tokens_per_s * plan.model_flops_per_token / b.peak_flops;
  b.hfu = plan.executed_flops() / b.step_s / b.peak_flops;
  return b;
}

std::string bench_text(const Config& config, const StepBench& b) {
  std::string s = fmt::format("{}\n", b.machine);
  s += fmt::format("matmul rate    {:.1f} GFLOP/s, median of repetitions between the steps; best {:.1f}\n", b.peak_flops * 1e-9,
                   b.best_flops * 1e-9);
  s += fmt::format("step           {:.3f} s, median of {}; {} tokens, precision {}, recompute {}\n", b.step_s, b.steps, b.tokens_per_step,
                   name_of(config.train.precision), config.train.recompute.str());
  s += fmt::format("speed          {:.1f} tokens/s, MFU {:.1f}%, HFU {:.1f}%\n", b.tokens_per_s, 100 * b.mfu, 100 * b.hfu);
  s += fmt::format("memory         planned {}, used {}\n", format_bytes(b.planned_bytes), format_bytes(b.used_bytes));
  if (!b.per_op) return s;
  s += fmt::format("\n{:<32} {:>7} {:>10} {:>7} {:>10} {:>9} {:>8}\n", "op", "calls", "ms", "share", "GFLOP/s", "GB/s", "of peak");
  const auto row = [&](std::string_view name, const OpCost& c) {
    if (c.calls == 0) return;
    s += fmt::format("{:<32} {:>7} {:>10.2f} {:>6.1f}% {:>10.1f} {:>9.1f} {:>7.1f}%\n", name, c.calls, c.seconds * 1e3,
                     100 * c.seconds / b.step_s, c.flops / c.seconds * 1e-9, c.bytes / c.seconds * 1e-9,
                     100 * c.flops / c.seconds / b.peak_flops);
  };
  for (int k = 0; k < kOpKinds; ++k) row(name_of(static_cast<OpKind>(k)), b.ops.op[static_cast<size_t>(k)]);
  for (const auto& [name, c] : b.ops.matmuls) row("  matmul " + name, c);
  return s;
}

nlohmann::ordered_json bench_json(const Config& config, const StepBench& b) {
  nlohmann::ordered_json j{{"machine", b.machine},
                           {"precision", name_of(config.train.precision)},
                           {"recompute", config.train.recompute.str()},
                           {"tokens_per_step", b.tokens_per_step},
                           {"step_s", b.step_s},
                           {"tokens_per_s", b.tokens_per_s},
                           {"mfu", b.mfu},
                           {"hfu", b.hfu},
                           {"peak_flops", b.peak_flops},
                           {"best_flops", b.best_flops},
                           {"planned_bytes", b.planned_bytes},
                           {"used_bytes", b.used_bytes}};
  if (!b.per_op) return j;
  const auto add = [&](const std::string& name, const OpCost& c) {
    if (c.calls > 0) j["ops"][name] = {{"calls", c.calls}, {"seconds", c.seconds}, {"flops", c.flops}, {"bytes", c.bytes}};
  };
  for (int k = 0; k < kOpKinds; ++k) add(std::string(name_of(static_cast<OpKind>(k))), b.ops.op[static_cast<size_t>(k)]);
  for (const auto& [name, c] : b.ops.matmuls) add("matmul " + name, c);
  return j;
}

}  // namespace hlat
