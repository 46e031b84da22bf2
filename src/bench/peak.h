// The machine's own ceilings, measured through the same op the model uses: the denominator of MFU where no data sheet
// is trusted.
#pragma once

#include <memory>
#include <vector>

#include "ops/device.h"
#include "param/precision.h"

namespace hlat {

// Repeats one square matmul. The object keeps its memory, so that rates can be taken between the steps of a benchmark:
// on a shared machine a rate is only comparable with what was measured at the same time.
class MatmulRate {
 public:
  MatmulRate(Backend& backend, DType dtype);
  ~MatmulRate();
  double best() const { return best_; }  // FLOP/s, over all repetitions
  double median() const;                 // FLOP/s, over all repetitions
  void measure(double seconds);          // adds repetitions

 private:
  struct Buffers;
  std::unique_ptr<Buffers> buffers_;
  std::vector<double> rates_;
  double best_ = 0;
};

// The types whose products a policy is held against, the fastest of them: bf16 on a CPU without bf16 instructions runs on the f32 kernel,
// FP8 is emulated there.
std::vector<DType> product_types(const Precision& precision);

// The ceiling for a policy: the best rate of a short measurement.
double measure_peak(Backend& backend, const Precision& precision);

// Bytes read and written per second by a copy that no cache holds: the ceiling of ops that compute little.
double measure_copy(Backend& backend);

}  // namespace hlat
