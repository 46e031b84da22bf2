// Values of a tensor of any float type, on the host.
#pragma once

#include <vector>

#include "ops/device.h"

namespace hlat {

std::vector<float> download_f32(Device& device, const Tensor& t);

}  // namespace hlat
