// The training loop: planned memory, steps, records, and a summary at the end.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/train_batches.h"
#include "eval/validation.h"
#include "record/progress.h"
#include "record/run_folder.h"
#include "train/step_runner.h"

namespace hlat {

// What the dry run and the machine say beforehand.
struct TrainPlan {
  MemoryPlan memory;
  size_t host_bytes = 0;  // of the host's memory for communication, beside the regions
  double model_flops_per_token = 0;
  double executed_flops_per_step = 0;  // by this rank
  double peak_flops = 0;               // of this rank
};

// Rank 0 shows and records; other ranks have neither.
struct Recorders {
  RunFolder* folder = nullptr;
  Progress* progress = nullptr;
};

struct TrainSummary {
  int64_t steps = 0;
  double loss = 0;          // mean over the last steps
  int64_t loss_steps = 0;   // how many those are
  double floor = 0;         // entropy of the corpus, nats per token; NaN when it is not known
  double tokens_per_s = 0;  // over all steps but the first
  double mfu = 0, hfu = 0;
  double seconds = 0;
  MemoryPlan planned, used;
  double data_wait_s = 0;  // over all steps but the first
  ValidationResult validation;
  Ledger ledger;
  std::vector<std::string> samples;
};

// Trains config.train.steps steps on this rank of the mesh. Memory use is compared with the plan at step 1: a difference is
// a bug and ends the run. `step` is the step under way, for whoever reports a failure.
TrainSummary train(const Config& config, const TrainPlan& plan, Backend& backend, const Mesh& mesh, const Dataset& data, Recorders out,
                   int64_t& step);

// Error unless the high-water mark of every region equals its plan.
void check_plan(const MemoryPlan& planned, const MemoryPlan& used);

}  // namespace hlat
