// The composition root: turns a config into a concrete backend. Nothing else names one.
#pragma once

#include <memory>

#include "config/config.h"
#include "ops/device.h"

namespace hlat {

std::unique_ptr<Backend> make_backend(const DeviceConfig& device);

// Cores this process may run on.
int available_cores();

}  // namespace hlat
