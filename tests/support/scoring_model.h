// A tiny model with weights alone and a cache, on ranks that are threads: what scoring and generation are tested on.
#pragma once

#include <functional>

#include "eval/executor_model.h"
#include "runtime/assembly.h"
#include "support/test_device.h"
#include "support/thread_comm.h"

namespace hlat {

// Runs `use` on every rank of the config's mesh, with the initial weights, which are the same in every layout. The memory of each rank is
// held against its plan afterwards.
inline void with_scoring_model(const Config& config, const std::function<void(KvPasses& passes, Comm& world)>& use,
                               const TestDevice& on = cpu_device()) {
  run_thread_ranks(static_cast<int>(config.parallel.ranks()), [&](Comm& world) {
    const auto backend = on.make();
    Assembly assembly(config, *backend, world, world.size(), ParamUse::weights, true);
    PlacedModel& model = assembly.build();
    model.executor().init_weights();
    KvPasses passes(model.executor(), kv_limits(config));
    passes.rehearse();
    use(passes, world);
    assembly.plan().check_used(model.high_water(), model.mesh());
  });
}

}  // namespace hlat
