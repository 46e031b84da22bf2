// Whom a fault meets, and those that other commands than train look for (hlat check).
#pragma once

#include <optional>

#include "config/config.h"
#include "config/fault_spec.h"

namespace hlat::fault {

// The rank that a fault is planted in; of rank=any one that follows from the seed. The same on all ranks.
int64_t victim_of(const FaultSpec& spec, uint64_t seed, int ranks);

// The fault of this kind in fault.inject that is planted in this rank; none: there is none.
std::optional<FaultSpec> planted(const FaultConfig& config, FaultKind kind, int rank, int ranks);

}  // namespace hlat::fault
