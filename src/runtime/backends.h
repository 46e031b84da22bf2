// The composition root: turns a config into a concrete backend. Nothing else names one.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "config/config.h"
#include "ops/device.h"
#include "ops/gpu_facts.h"

namespace hlat {

// This process on its machine.
struct Place {
  int threads = 1;     // of this rank, when the config leaves them to us
  int local_rank = 0;  // on this host: chooses the GPU
};

// The GPU that a rank takes of those of its host, by device.backend; none: the CPU. UsageError, with the card, where `cuda` is asked for
// and no GPU can be used.
std::optional<int> pick_gpu(const std::string& asked, const GpuChoice& gpus, int local_rank);

size_t usable_gpus();  // of this machine

// device.backend = auto: a GPU where there is one that this program has kernels for, else the CPU, which says why. Ranks of a host take its
// GPUs in turn.
std::unique_ptr<Backend> make_backend(const DeviceConfig& device, const Place& place);

}  // namespace hlat
