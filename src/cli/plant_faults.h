// The faults that the config plants in this rank (fault/injector.h), told on stderr and in log.txt.
#pragma once

#include <memory>

#include "cli/run_guard.h"
#include "fault/injector.h"

namespace hlat {

// Which start of the run this is: the number that hlat launch gives its ranks; 1 without one. UsageError when it is no number.
inline constexpr const char* kAttemptVariable = "HLAT_ATTEMPT";
int this_attempt();

// Null: none. From now on it sees the phases of the start-up; it must not end before the last of them has begun.
std::unique_ptr<fault::Injector> plant_faults(const Config& config, const Launch& launch, bool fresh, RunGuard& guard);

}  // namespace hlat
