// Values of a tensor of any float type, on the host; of FP8 as they are stored, without their scale.
#pragma once

#include <vector>

#include "ops/device.h"

namespace hlat {

std::vector<float> download_f32(Device& device, const Tensor& t);

}  // namespace hlat
