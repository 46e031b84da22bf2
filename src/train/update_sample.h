// Whether updates are those of AdamW: a few elements of some tensors before and after a step, held against what the formula makes of the
// moments as they are stored, the learning rate and the number of the step, computed anew in double:
//
//   w' = (1 - lr decay) w - lr (m / (1 - beta1^step)) / (sqrt(v / (1 - beta2^step)) + eps)
//
// A bias correction that is forgotten, another rate, decay where there is none: each shows in the first measured step. Of weights in bf16
// without masters nothing is told, since what rounding does to them is as large as the update.
#pragma once

#include <optional>
#include <vector>

#include "config/config.h"
#include "ops/device.h"
#include "param/param_store.h"

namespace hlat {

class UpdateSample {
 public:
  // Both must outlive this.
  UpdateSample(const ParamStore& params, Device& device);

  void take();  // before the update
  // After it: the norm of what the update is off by over the norm that it should have, beyond what rounding explains; of the tensor where
  // that is largest. none: nothing of this rank moves, or can be looked at.
  std::optional<double> error(const OptimConfig& optim, double lr, int64_t step) const;

 private:
  struct Piece {
    size_t unit = 0;
    int64_t begin = 0, end = 0;  // elements of the unit
    std::vector<float> before;
  };
  std::vector<float> values(const Tensor& t, const Piece& piece) const;

  const ParamStore& params_;
  Device& device_;
  std::vector<Piece> pieces_;
};

}  // namespace hlat
