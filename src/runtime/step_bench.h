// Times the training step on this machine, with the matmul rate measured in the same run.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "config/config.h"
#include "ops/cost.h"
#include "ops/device.h"

namespace hlat {

struct StepBench {
  std::string machine;
  int64_t steps = 0, tokens_per_step = 0;
  double step_s = 0;  // median
  double tokens_per_s = 0, mfu = 0, hfu = 0;
  double peak_flops = 0;  // matmul rate: median of repetitions taken before, between and after the steps
  double best_flops = 0;  // the fastest of them
  size_t planned_bytes = 0, used_bytes = 0;
  Cost ops;  // per step; filled when asked for
  bool per_op = false;
};

StepBench bench_step(const Config& config, Backend& backend, int64_t steps, bool per_op);
std::string bench_text(const Config& config, const StepBench& bench);
nlohmann::ordered_json bench_json(const Config& config, const StepBench& bench);

}  // namespace hlat
