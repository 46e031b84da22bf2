#include "selfcheck/check_model.h"

namespace hlat {

std::string SelfCheckRun::rank_words(int r) const {
  if (world.size() == 1) return "the rank";
  const MeshCoord c = coord(r);
  return fmt::format("rank {} (tp {}, pp {}, dp {})", r, c.tp, c.pp, c.dp);
}

double check_lr(const Precision& precision) { return precision.master || precision.weight != DType::bf16 ? 1e-3 : 8e-3; }

std::string model_faults_of(const FaultConfig& fault) {
  std::vector<std::string> problems;  // told when the config was read
  std::string text;
  for (const FaultSpec& spec : parse_faults(fault.inject, problems))
    if (fault::is_of_model(spec.kind)) text += (text.empty() ? "" : "; ") + spec.text();
  return text;
}

CheckModel::CheckModel(const Config& config, Backend& backend, Comm& world, int local_ranks, bool faults)
    : config_(config), assembly_(config_, backend, world, local_ranks), model_(assembly_.build()), train_(model_.executor()) {
  train_.before_updates([this](int64_t, double, double) { return updates_; }, true);
  rows_.emplace(make_rows());
  config_.fault = {.inject = faults ? model_faults_of(config.fault) : "", .every_s = 0, .kinds = "", .seed = config.fault.seed};
  if (config_.fault.inject.empty()) return;
  faults_ = std::make_unique<fault::Injector>(config_, fault::InjectorSetup{.rank = world.rank(), .ranks = world.size(), .fresh = true});
  faults_->place(mesh(), params(), device(), config_.train.steps);
  train_.inject(*faults_);
}

KnownRows CheckModel::make_rows() const {
  return {config_, part_of(config_.train.global_batch, mesh().coord().dp, mesh().shape().dp).begin};
}

// Replicas are compared by the checks, not by the step: a difference must not end the check in the middle of a step.
StepResult CheckModel::step(int64_t number, KnownRows& rows, bool updates) {
  updates_ = updates;
  if (faults_) faults_->at_step(number);
  return train_.run(number, lr(), executor().reads_batches() ? &rows : nullptr, false);
}

}  // namespace hlat
