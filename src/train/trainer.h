// The training loop: steps from a state on, records, and a summary at the end.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "data/data_state.h"
#include "data/ledger.h"
#include "data/train_batches.h"
#include "eval/validation.h"
#include "model/placed_model.h"
#include "record/progress.h"
#include "record/run_folder.h"
#include "train/alarm_watch.h"
#include "train/loss_event.h"
#include "train/loss_policy.h"
#include "train/run_saves.h"
#include "train/train_step.h"

namespace hlat {

// Where a run stands: all that a resume needs besides the tensors. The loop advances it and nothing else.
struct TrainState {
  int64_t step = 0;               // steps done
  std::optional<DataState> data;  // of the lanes that this rank reads, or of all; none on ranks that read no batches
  LossState loss;                 // what was skipped, is to be, and what a spike is held against
  AlarmState alarms;              // what alarms remember; kept up on rank 0 alone
  int64_t health_passed = 0;      // the latest step after which replicas were compared and equal; 0: none
};

// What an evaluation of tasks came to, on rank 0.
struct StepEvaluation {
  std::vector<std::pair<std::string, double>> values = {};  // by name, for the record
  int cut_off_by = 0;                                       // the signal that ended it early; 0: none
};

// What a rank trains with. plan and peak_flops are its own.
struct TrainSetup {
  const RankPlan& plan;
  double peak_flops = 0;
  PlacedModel& model;
  const Dataset* data = nullptr;      // null on ranks that read no batches
  FlightRecorder* flight = nullptr;   // what is under way, for whoever watches this process
  fault::Injector* faults = nullptr;  // that are planted; null: none
  // Rank 0 shows and records; other ranks have neither.
  RunFolder* folder = nullptr;
  Progress* progress = nullptr;
  // What it saves and how; none: it saves nothing.
  std::optional<SavesSetup> saves = {};
  // Evaluates tasks after a step where they are due, collective over all ranks. One that a signal cuts off ends the run where it stands.
  std::function<StepEvaluation(int64_t step)> evaluate = {};
  std::function<bool(int64_t step)> evaluation_due = {};  // the same on all ranks; there where `evaluate` is
  // Asked on rank 0 after every step: useful time over wall time so far, for the record; empty: not of interest.
  std::function<double(const StepMetrics& m)> goodput = {};
  // On rank 0: a step whose loss was off, or that was skipped, or an alarm, before the run ends where it does.
  std::function<void(const LossEvent&)> tell_loss = {};
  // Asked on rank 0 after every step: what the log should say about how it was computed.
  std::function<std::vector<std::string>()> notes = {};
  // Asked after every step, and once where none is left: the signal that wants this process to end, 0 for none. All ranks end together
  // after the step in which any has one.
  std::function<int()> end_signal = {};
};

struct TrainSummary {
  int64_t steps = 0;            // done in all
  int ended_by = 0;             // the signal that ended it before its last step, or in the evaluation after it; 0: none
  double loss = 0;              // mean over the last steps
  int64_t loss_steps = 0;       // how many those are; 0: this process has no loss, and `loss` is NaN
  std::optional<double> floor;  // entropy of the corpus, nats per token, where it is known
  double tokens_per_s = 0;      // over all steps but the first of this process
  int64_t timed_steps = 0;      // how many those are
  double mfu = 0, hfu = 0;
  double seconds = 0;
  MemoryPlan planned, used;
  size_t resident = 0;                         // of this process, at its most
  size_t device_in_use = 0;                    // of a device with memory of its own, by all processes
  double data_wait_s = 0;                      // over all steps but the first of this process
  std::optional<ValidationResult> validation;  // the latest; none: nothing is held out, or it ended before
  int64_t first_step = 1;                      // of this process
  std::optional<int64_t> saved_step;           // of its latest checkpoint; none: it saves nothing, or nothing was saved
  int64_t skipped_steps = 0;                   // of the whole run
  std::map<std::string, int64_t> alarms;       // told in the whole run, by rule; on rank 0
  std::string save_problem;                    // why the last step is not saved; empty: it is, or nothing is
  Ledger ledger;
};

// Trains from `state` to config.train.steps, or until a signal ends it, on this rank of the mesh; where all steps are done, what follows
// the last one is made. Memory use is compared with the plan in the first step of every process: a difference is a bug and ends the run.
// `step` is the step under way, for whoever reports a failure, from any thread (std::atomic_ref).
TrainSummary train(const Config& config, const TrainSetup& setup, TrainState& state, int64_t& step);

}  // namespace hlat
