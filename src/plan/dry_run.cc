#include "plan/dry_run.h"

#include "backend/null/null_ops.h"
#include "comm/null_comm.h"
#include "train/step_runner.h"

namespace hlat {

std::vector<AxisTraffic> traffic_of(const Mesh& mesh) {
  std::vector<AxisTraffic> list;
  for (const auto& comm : mesh.comms()) list.push_back({comm->name(), comm->size(), comm->traffic()});
  return list;
}

Plan dry_run(const Config& config, const Ops* scratch_model, int rank, Transport comm) {
  Memory memory;
  const Mesh mesh(config, rank, [comm](const AxisGroup& g) { return std::make_unique<NullComm>(g.rank, g.size, g.name, comm); });
  NullOps ops(memory[Purpose::temp], scratch_model);
  StepRunner runner(config, precision_of(config.train.precision), mesh, memory, ops, nullptr);
  ops.reset_cost();
  runner.step(1, 0.0, {});
  Plan plan;
  plan.memory = memory.high_water();
  plan.cost = ops.cost();
  plan.traffic = traffic_of(mesh);
  plan.host_bytes = mesh.host_bytes();
  plan.mesh = mesh.shape();
  plan.coord = mesh.coord();
  plan.parameters = parameter_count(config.model);
  plan.tokens_per_step = config.train.global_batch * config.train.seq_len;
  plan.model_flops_per_token = model_flops_per_token(config.model, config.train.seq_len);
  return plan;
}

}  // namespace hlat
