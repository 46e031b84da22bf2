// What a step measures of itself, every monitor.every steps (record/monitors.h). Its buffers come from the io region when it is made, so a
// measured step takes no more memory than any other; between measured steps nothing is sent, and nothing computed but sums of what FP8
// could not hold (train/fp8_counts.h).
//
// On the device the layers write largest values and losses by part of the sequence and by source (nn/watch.h), and the update what it
// changed (AdamwChange), each unit by itself. At the end of the step a rank downloads these few numbers, adds them up by part of the model,
// and one exchange between hosts makes the sums and largest values of all ranks. A rank leaves out what another one counts.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "data/batch.h"
#include "model/executor.h"
#include "optim/adamw.h"
#include "record/monitors.h"
#include "train/fp8_counts.h"
#include "train/repeated_rows.h"
#include "train/update_sample.h"

namespace hlat {

// The sums and the largest values over all ranks of the mesh, element by element. Collective.
void combine_over(const Mesh& mesh, std::vector<double>& sums, std::vector<double>& largest);

class StepMonitor {
 public:
  explicit StepMonitor(Executor& executor);

  bool due(int64_t step) const { return every_ > 0 && step % every_ == 0; }

  // At the end of every step, before it is told: what FP8 could not hold.
  void count_fp8(bool updated) {
    if (fp8_) fp8_->add(updated);
  }

  // Of a step that is due, in this order:
  void begin();  // before its micro-batches
  // Rows [first, first + batch.rows) of this rank's rows were read, and will be computed next.
  void loaded(int64_t step, int64_t first, const Batch& batch, const BatchSource& source);
  void end_passes();  // its micro-batches are on their way
  // All is updated, with this learning rate. Collective.
  Monitors finish(const OptimScalars& s, double lr, int64_t step);
  // In its place where the step is skipped: what FP8 could not hold, if there is FP8. Collective.
  std::optional<Monitors> finish_skipped();

  Tensor change() const { return change_; }  // (U, kAdamwChange) f64, what updates write; undefined where nothing is ever measured

 private:
  struct Numbers;
  void add_units(const OptimScalars& s, Numbers& n) const;
  void add_passes(Numbers& n);
  Monitors monitors_of(const Numbers& n) const;

  Executor& executor_;
  const Config& config_;
  const Mesh& mesh_;
  Device& device_;
  int64_t every_, parts_, sources_, positions_;
  Tensor maxima_;  // (2 L + 1) f64: Watch::activation, then Watch::lse
  Tensor losses_;  // (sources, positions) f64; on the last stage, as is the next
  Tensor groups_;  // (B) i32: sources of the rows of a micro-batch
  Tensor change_;
  Watch watch_;
  UpdateSample updates_;
  RepeatedRows repeated_;
  std::optional<Fp8Tally> fp8_;  // where anything is measured
  // Of the step under way.
  std::vector<double> source_rows_;           // by source: rows that were read
  std::vector<std::vector<int32_t>> sample_;  // rows of T + 1 tokens
  double repetition_ = 0, copy_baseline_ = 0, sampled_ = 0;
};

}  // namespace hlat
