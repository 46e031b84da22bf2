// A run of a study as a process: hlat train itself, or mpirun with it where the run has several ranks, the way hlat launch starts them.
#pragma once

#include <memory>

#include "study/runner.h"

namespace hlat {

// Writes the run's config into its folder and starts it; it ends with this process. fresh: what the folder has is set aside. Error: it
// cannot be started.
std::unique_ptr<RunProcess> start_run_process(const PlannedRun& run, bool fresh);

}  // namespace hlat
