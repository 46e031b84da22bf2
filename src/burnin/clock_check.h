// How far the hosts' clocks are apart. Rank 0 asks one rank of each host for the time, several times; the answer with the shortest round
// trip counts, and is right within half of that.
#pragma once

#include "burnin/check_run.h"

namespace hlat {

inline constexpr double kMostSkew = 1;  // seconds, without a warning

PartReport check_clock(const CheckRun& run);

}  // namespace hlat
