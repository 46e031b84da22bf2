#include "runtime/auto_micro_batch.h"

#include <algorithm>

#include "comm/host_exchange.h"
#include "plan/micro_batch.h"
#include "runtime/assembly.h"

namespace hlat {

namespace {

int64_t largest_here(Config config, Backend& backend, Comm& world, int local_ranks, std::optional<int64_t> saved) {
  const DeviceComm comm(config, backend, world, local_ranks);
  Region measuring;
  const auto ops = backend.make_ops(measuring);
  const PlanTarget target{.scratch_model = ops.get(), .transport = comm.transport()};
  const Fit fit = fit_here(backend, comm.sharing(), local_ranks);
  if (!saved) return largest_micro_batch(config, target, fit);
  config.train.micro_batch = *saved;
  return micro_batch_fits(config, target, fit) ? *saved : 0;
}

}  // namespace

Config with_micro_batch(Config config, Backend& backend, Comm& world, int local_ranks, std::optional<int64_t> saved) {
  if (config.train.micro_batch > 0) return config;
  const std::vector<int64_t> all = all_gather_values(world, largest_here(config, backend, world, local_ranks, saved));
  const int64_t least = *std::min_element(all.begin(), all.end());
  if (least == 0) return with_micro_batch(std::move(config), backend, world, local_ranks);  // the saved one does not fit everywhere
  config.train.micro_batch = least;
  return config;
}

}  // namespace hlat
