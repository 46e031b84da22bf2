// A model and its steps, as benchmarks run them: weights as a run begins with, rows of the embedded corpus, a fixed learning rate.
#pragma once

#include <optional>

#include "base/machine.h"
#include "bench/embedded_rows.h"
#include "runtime/assembly.h"
#include "train/train_step.h"

namespace hlat {

class BenchModel {
 public:
  // Builds the assembly, which must outlive this as the world must. Collective.
  BenchModel(Assembly& assembly, const Config& config, Comm& world) : world_(world), placed_(assembly.build()), step_(placed_.executor()) {
    placed_.executor().init_weights();
    if (placed_.executor().reads_batches()) rows_.emplace(config, placed_.mesh());
  }

  StepResult run(int64_t number, bool check = true) { return step_.run(number, 1e-4, rows(), check); }

  // Seconds of this rank for some work that all ranks begin together.
  template <class Work>
  double timed(const Work& work) {
    world_.barrier();
    const double start = now_s();
    work();
    return now_s() - start;
  }

  PlacedModel& placed() { return placed_; }
  const Mesh& mesh() const { return placed_.mesh(); }
  TrainStep& step() { return step_; }
  BatchSource* rows() { return rows_ ? &*rows_ : nullptr; }  // null on ranks that read no batches

 private:
  Comm& world_;
  PlacedModel& placed_;
  TrainStep step_;
  std::optional<EmbeddedRows> rows_;
};

}  // namespace hlat
