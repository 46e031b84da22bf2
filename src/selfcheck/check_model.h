// The model that checks step: one rank of a mesh, put together as a run does it, with the faults of the model that fault.inject plants, and
// known rows. A step may leave out its update, and then only measures.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "fault/injector.h"
#include "runtime/assembly.h"
#include "selfcheck/known_rows.h"
#include "train/train_step.h"

namespace hlat {

class CheckModel;

// What the checks of a rank share.
struct SelfCheckRun {
  const Config& given;   // the run's
  const Config& config;  // the shrunk one; run.dir is a folder for the time of the check, which all ranks see
  Backend& backend;
  Comm& world;
  int local_ranks = 1, threads = 1;
  std::vector<int> on_host;                          // ranks
  std::function<void(CheckModel&)> after_load = {};  // of `resume`, for tests: spoils what was loaded
  int rank() const { return world.rank(); }
  bool drifts() const { return !config.precision.keyed_noise && world.size() > 1; }  // ranks draw noise of their own, and come apart
  MeshCoord coord(int r) const { return coord_of(r, mesh_shape(config.parallel)); }
  std::string rank_words(int r) const;  // "rank 3 (tp 1, pp 0, dp 1)"; "the rank" of one
};

// A step's learning rate: without masters a weight of bf16 moves by whole steps, which must be visible in weights near one.
double check_lr(const Precision& precision);

// The faults of the model that the config plants, as fault.inject has them.
std::string model_faults_of(const FaultConfig& fault);

class CheckModel {
 public:
  // faults: plant what fault.inject says. Collective over `world`.
  CheckModel(const Config& config, Backend& backend, Comm& world, int local_ranks, bool faults);

  void start() { executor().init_weights(); }
  StepResult step(int64_t number, KnownRows& rows, bool updates = true);
  StepResult step(int64_t number) {
    rows_->step = number;
    return step(number, *rows_);
  }
  KnownRows make_rows() const;  // of this rank

  Executor& executor() { return model_.executor(); }
  const ParamStore& params() { return executor().params(); }
  const Mesh& mesh() const { return model_.mesh(); }
  Device& device() { return model_.device(); }
  TrainStep& train() { return train_; }
  Ops& ops() { return model_.ops(); }
  fault::Injector* faults() { return faults_.get(); }
  double lr() { return check_lr(params().precision()); }

 private:
  Config config_;
  Assembly assembly_;
  PlacedModel& model_;
  std::unique_ptr<fault::Injector> faults_;
  TrainStep train_;
  std::optional<KnownRows> rows_;
  bool updates_ = true;
};

}  // namespace hlat
