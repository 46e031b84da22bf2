// The scales of FP8 products where weights exist and scales do not (a resume from a policy without FP8, checkpoint.init_from): the first
// step runs its micro-batches forward and backward without an update, to set the scales of inputs and gradients from what they meet, and
// then is done on the same rows. What lies behind values that saturated, or behind some that were lost, was not measured: passes go on
// until nothing saturates and no scale changes by more than 2. They begin with the declared scales, so that scales are a function of
// weights and rows.
#pragma once

#include <string>
#include <vector>

#include "model/executor.h"

namespace hlat {

struct Fp8Calibrated {
  int64_t passes = 0;
  bool finite = true;      // what was met; else no scales were learned, and the next batch is measured in place of this one
  bool saturated = false;  // values of the last pass were, which was one too few
  std::string words() const;
};

class Fp8Calibration {
 public:
  Fp8Calibration(Executor& executor, int64_t step);

  void begin_pass() const { executor_.fp8().begin_step(); }
  // Whether it was the last. Collective over the mesh, the same on all ranks.
  bool end_pass();
  Fp8Calibrated result() const { return result_; }

 private:
  std::vector<float> scales() const;

  Executor& executor_;
  int64_t step_;
  Fp8Calibrated result_;
};

}  // namespace hlat
