// One training step of one rank, on top of the executor: the pipeline's schedule, gradient sums, health checks, clipping and the update.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>

#include "data/batch.h"
#include "health/health.h"
#include "health/light_check.h"
#include "model/executor.h"
#include "optim/adamw.h"
#include "train/fp8_calibration.h"
#include "train/grad_sync.h"
#include "train/probe.h"
#include "train/shared_weights.h"
#include "train/step_monitor.h"

namespace hlat {

struct StepResult {
  double loss = 0;        // mean over the tokens of the step, on all ranks
  double grad_norm = 0;   // before clipping
  double param_norm = 0;  // after the update
  double data_wait_s = 0;
  double comm_s = 0;                             // time of all communication of this rank
  double comm_wait_s = 0;                        // the part of it that computation waited for
  bool checked = false;                          // this rank and its peers compared what they hold, and it was equal
  bool skipped = false;                          // the update was left out; param_norm is not known
  std::optional<Monitors> monitors = {};         // where they are due; of a step that is skipped, what FP8 could not hold
  std::optional<Fp8Calibrated> calibrated = {};  // before this step
};

class TrainStep {
 public:
  explicit TrainStep(Executor& executor);

  // `source` is read on ranks whose executor reads batches, and null elsewhere and in a dry run. check: whether a step whose turn it is
  // compares replicas and measures itself; a dry run plans a step without.
  StepResult run(int64_t step, double lr, BatchSource* source, bool check = true);

  // Called before the update of each bucket, whose elements may be changed when it returns; empty: nothing to wait for.
  void on_update(std::function<void(int bucket)> before_update) { before_update_ = std::move(before_update); }

  // Asked on every rank before the update, with the loss and gradient norm of the step, which are the same on all: false leaves it out.
  // Where it is set a step waits for the device once more. Empty: every step updates. A step that is left out tells the scales of FP8 what
  // it met, unless it only measures.
  using Gate = std::function<bool(int64_t step, double loss, double grad_norm)>;
  void before_updates(Gate gate, bool only_measures = false) { gate_ = std::move(gate), only_measures_ = only_measures; }

  // A step that is not computed: its rows are read, and nothing else happens.
  void pass_over(BatchSource* source);
  // Compares what replicas hold of the state that is about to be saved, where this run compares at all. FailedStep. Collective.
  void check_state(int64_t step);

  Probe& probe() { return probe_; }  // between steps

  void record_to(FlightRecorder& flight) { flight_ = &flight; }  // what of a step is under way; it must outlive this
  void trace_to(StepTrace& trace) { trace_ = &trace; }           // likewise

  // Faults that are planted in it; it must outlive this.
  void inject(fault::Injector& faults) {
    faults.place_rope(executor_.rope_table());
    executor_.plant(&faults.passes());
    faults_ = &faults;
    sync_.inject(faults);
  }

  int64_t micros() const { return micros_; }
  std::string compared() const { return health_.compared(); }  // by a step with StepResult::checked
  Executor& executor() const { return executor_; }

 private:
  enum Total : size_t { kGradSq, kLoss, kWeightSq, kTotals };
  struct CommTime {
    double all = 0, waited = 0;
  };
  void load(const Action& a, BatchSource* source, StepResult& result);
  void forward_backward(const Action& a);
  GradientSums sums_of(const Action& a);
  void run_schedule(BatchSource* source, StepResult& result);
  void calibrate(int64_t step, BatchSource* source, StepResult& result);
  bool run_graphs(BatchSource* source, StepResult& result);
  void begin(int64_t step, double lr, bool check, StepResult& result);
  void compute_gradients(int64_t step, BatchSource* source, StepResult& result);
  void clip_gradients();
  void apply_update(int64_t step, double lr, StepResult& result);
  void leave_update_out(int64_t step, StepResult& result);
  void update(int64_t step);
  CommTime comm_time() const;
  void now(FlightAction action, int micro = -1, int chunk = -1);
  Tensor total(size_t index) const;
  void sum_over_ranks(Tensor t, bool over_tp, bool over_dp);
  void sum_loss();
  bool pass_gate(int64_t step, StepResult& result);
  void read_totals(int64_t step, StepResult& result) const;
  void check_finite(int64_t step, double loss, double grad_sq, bool updated) const;

  Executor& executor_;
  const Config& config_;
  const Mesh& mesh_;
  const ParamStore& params_;
  Ops& ops_;
  Device& device_;
  int64_t micros_;
  double loss_scale_;  // of a token, in gradients
  Schedule schedule_;
  AdamW optimizer_;
  GradSync sync_;
  SharedWeights shared_weights_;
  Health health_;
  LightCheck light_;
  StepMonitor monitor_;
  Probe probe_;
  Batch batch_;
  std::function<void(int)> before_update_;
  Gate gate_;
  bool only_measures_ = false;  // where the gate leaves an update out
  FlightRecorder* flight_ = nullptr;
  StepTrace* trace_ = nullptr;
  fault::Injector* faults_ = nullptr;
  bool calibrating_ = false;  // passes that are part of no step
  int64_t watched_ = 0;       // the step under way, where it measures itself; else 0
  // The passes of steps that do not measure themselves, and of those that do.
  struct Passes {
    bool ran = false;                                  // a step's schedule, op by op
    std::array<std::unique_ptr<Recording>, 2> graphs;  // of a micro-batch: the first of a step, and one that adds to its gradients
  };
  std::array<Passes, 2> passes_;
  Passes& passes() { return passes_[watched_ > 0 ? 1 : 0]; }  // of the step under way
  bool records_ = true;                                       // more of them, until the device does not
  Tensor totals_;                                             // (3) f64: squared gradient norm, loss, squared weight norm
  OptimScalars scalars_;
};

}  // namespace hlat
