// Means over the steps of this process, for the summary of its run: the loss over the last steps, speeds without the first step, which
// starts libraries too.
#pragma once

#include <cstdint>
#include <limits>

#include "record/metrics.h"

namespace hlat {

struct TrainSummary;

class Means {
 public:
  // A run of `steps` that stands after `done`.
  Means(int64_t done, int64_t steps);

  void add(const StepMetrics& m, int64_t tokens);
  void finish(TrainSummary& s) const;

 private:
  int64_t last_, done_, steps_, losses_ = 0;
  double loss_ = 0, latest_loss_ = std::numeric_limits<double>::quiet_NaN(), seconds_ = 0, data_wait_s_ = 0;
  int64_t tokens_ = 0, timed_ = 0;
};

}  // namespace hlat
