// Times the training step on this machine, with the matmul rate measured in the same run.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "config/config.h"
#include "model/rank_plan.h"
#include "ops/cost.h"
#include "ops/device.h"

namespace hlat {

struct StepBench {
  std::string machine;
  int64_t steps = 0, tokens_per_step = 0;
  double step_s = 0;  // median
  double tokens_per_s = 0, mfu = 0, hfu = 0;
  // Matmul rate of the fastest type that the policy multiplies: median of repetitions taken before, between and after the steps.
  double peak_flops = 0;
  DType peak_type = DType::f32;
  double best_flops = 0;  // the fastest of them
  double wide_flops = 0;  // as peak_flops, of products that are not FP8
  double copy_bytes = 0;  // per second, read and written; of one rank, measured with per_op
  size_t planned_bytes = 0, used_bytes = 0;
  double comm_s = 0, comm_wait_s = 0;  // per step: time of all communication, and what of it computation waited for
  std::vector<AxisTraffic> traffic;    // per step
  MeshShape mesh;
  Cost ops;  // per step; filled when asked for
  bool per_op = false;
};

// On every rank of `world`, which the config's mesh must fit; figures are of rank 0, speeds and rates of all ranks together.
// local_ranks: of those, the ones on this host.
StepBench bench_step(const Config& config, Backend& backend, Comm& world, int local_ranks, int64_t steps, bool per_op);
std::string bench_text(const Config& config, const StepBench& bench);
nlohmann::ordered_json bench_json(const Config& config, const StepBench& bench);

}  // namespace hlat
