// Which choices of a precision policy make no sense together.
#pragma once

#include "config/validate.h"

namespace hlat {

std::vector<Violation> precision_violations(const Config& config);

}  // namespace hlat
