#include "plan/dry_run.h"

#include <algorithm>
#include <optional>

#include "backend/null/null_backend.h"
#include "checkpoint/saver.h"
#include "comm/null_comm.h"
#include "eval/validation.h"
#include "model/kv_passes.h"
#include "model/placed_model.h"
#include "train/train_step.h"

namespace hlat {

namespace {

// Groups are traced before the step is made: it asks them how they overlap with computation.
void run_step(const Mesh& mesh, PlacedModel& model, StepTrace* trace) {
  if (trace != nullptr) {
    for (size_t axis = 0; axis < kAxes; ++axis) dynamic_cast<NullComm&>(*mesh.comms()[axis]).trace_to(*trace, static_cast<uint8_t>(axis));
    model.ops().trace_to(*trace);
  }
  TrainStep step(model.executor());
  if (trace != nullptr) step.trace_to(*trace);
  step.run(1, 0.0, nullptr, false);
}

}  // namespace

RankPlan dry_run(const Config& config, const PlanTarget& target, int rank, StepTrace* trace) {
  const Mesh mesh(config, rank, [&](const AxisGroup& g) { return std::make_unique<NullComm>(g.rank, g.size, g.name, target.transport); });
  NullBackend backend(target.scratch_model);
  PlacedModel model(config, precision_of(config), mesh, backend, nullptr, target.use);
  RankPlan plan;
  plan.use = target.use;
  const bool trains = target.use == ParamUse::training;
  const int64_t rows = trains ? config.train.global_batch : config.train.micro_batch * mesh.shape().dp;
  std::optional<KvPasses> cached;
  if (target.cached || (trains && config.eval.in_loop())) cached.emplace(model.executor(), kv_limits(config)).rehearse();
  model.ops().reset_cost();
  mesh.reset_traffic();
  if (trains)
    run_step(mesh, model, trace);
  else if (cached)
    cached->rehearse_scoring();
  else
    mean_loss(model.executor(), rows, nullptr);
  plan.cost = model.ops().cost();
  plan.traffic = traffic_of(mesh);
  plan.memory = model.high_water();
  plan.fp8_saves = model.executor().fp8_saves();
  plan.host_bytes = mesh.host_bytes();
  if (trains) plan.saved_bytes = Saver::state_bytes(model.executor().params(), mesh.coord().dp, mesh.shape().dp);
  plan.mesh = mesh.shape();
  plan.coord = mesh.coord();
  plan.parameters = parameter_count(config.model);
  plan.tokens = rows * config.train.seq_len;
  plan.flops_per_token = model_flops_per_token(config.model, config.train.seq_len) / (trains ? 1 : 3);  // a third of them are the forward's
  return plan;
}

std::vector<RankPlan> plan_stages(const Config& config, const PlanTarget& target) {
  const MeshShape shape = mesh_shape(config.parallel);
  std::vector<RankPlan> stages;
  for (int pp = 0; pp < shape.pp; ++pp) stages.push_back(dry_run(config, target, rank_of({.tp = 0, .pp = pp, .dp = 0}, shape)));
  return stages;
}

const RankPlan& fullest(const std::vector<RankPlan>& stages) {
  return *std::max_element(stages.begin(), stages.end(),
                           [](const RankPlan& a, const RankPlan& b) { return a.memory.total() < b.memory.total(); });
}

}  // namespace hlat
