// The composition root: turns a config into a concrete backend. Nothing else names one.
#pragma once

#include <memory>

#include "config/config.h"
#include "ops/device.h"

namespace hlat {

// This process on its machine.
struct Place {
  int threads = 1;     // of this rank, when the config leaves them to us
  int local_rank = 0;  // on this host: chooses the GPU
};

// device.backend = auto: a GPU where there is one, else the CPU. Ranks of a host take its GPUs in turn.
std::unique_ptr<Backend> make_backend(const DeviceConfig& device, const Place& place);

}  // namespace hlat
