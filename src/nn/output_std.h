// The spread of initial output projections, of which every layer adds two to the residual stream.
#pragma once

#include <cmath>

#include "config/config.h"

namespace hlat {

inline double output_std(const ModelConfig& model) {
  return model.scaled_init ? model.init_std / std::sqrt(2.0 * static_cast<double>(model.layers)) : model.init_std;
}

}  // namespace hlat
