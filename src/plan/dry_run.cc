#include "plan/dry_run.h"

#include "backend/null/null_ops.h"
#include "train/step_runner.h"

namespace hlat {

Plan dry_run(const Config& config, const Ops* scratch_model) {
  Memory memory;
  NullOps ops(memory[Purpose::temp], scratch_model);
  StepRunner runner(config, precision_of(config.train.precision), memory, ops, nullptr);
  ops.reset_cost();
  runner.step(1, 0.0, {});
  Plan plan;
  plan.memory = memory.high_water();
  plan.cost = ops.cost();
  plan.parameters = runner.params().elements();
  plan.tokens_per_step = config.train.global_batch * config.train.seq_len;
  plan.model_flops_per_token = model_flops_per_token(config.model, config.train.seq_len);
  return plan;
}

}  // namespace hlat
