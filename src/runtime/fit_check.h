// Whether every rank has the memory that its plan asks for. Asked of all ranks after the mesh is made, when transports have taken theirs,
// and before any rank takes a region: ranks of one host see the same memory.
#pragma once

#include "runtime/assembly.h"

namespace hlat {

// Collective over `world`. UsageError on every rank where one does not fit: it names the rank, its host and what would change it.
void check_fit(const Config& config, const Assembly& assembly, Comm& world, const std::string& host);

// The same with what each rank found given, for tests.
void check_fit(const Config& config, const RankPlan& plan, const PlanTarget& target, const Fit& fit, Comm& world, const std::string& host);

}  // namespace hlat
