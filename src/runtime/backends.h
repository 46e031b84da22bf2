// The composition root: turns a config into a concrete backend. Nothing else names one.
#pragma once

#include <memory>

#include "config/config.h"
#include "ops/device.h"

namespace hlat {

// threads: of this rank, when the config leaves them to us.
std::unique_ptr<Backend> make_backend(const DeviceConfig& device, int threads);

}  // namespace hlat
