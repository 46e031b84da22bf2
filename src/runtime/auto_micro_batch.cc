#include "runtime/auto_micro_batch.h"

#include <algorithm>

#include "comm/host_exchange.h"
#include "plan/micro_batch.h"
#include "runtime/assembly.h"

namespace hlat {

namespace {

int64_t largest_here(const Config& config, Backend& backend, Comm& world, int local_ranks) {
  const DeviceComm comm(config, backend, world, local_ranks);
  Region measuring;
  const auto ops = backend.make_ops(measuring);
  return largest_micro_batch(config, {.scratch_model = ops.get(), .transport = comm.transport()},
                             fit_here(backend, comm.sharing(), local_ranks));
}

}  // namespace

Config with_micro_batch(Config config, Backend& backend, Comm& world, int local_ranks) {
  if (config.train.micro_batch > 0) return config;
  const std::vector<int64_t> all = all_gather_values(world, largest_here(config, backend, world, local_ranks));
  config.train.micro_batch = *std::min_element(all.begin(), all.end());
  return config;
}

}  // namespace hlat
