// What ranks were doing, for people: a line for each rank, and the last events of a ring.
#pragma once

#include <string>

#include "supervise/wait_graph.h"

namespace hlat {

// A line: rank, host, pid, state of the process, what it does, open operations with their numbers and whom they wait for, silence.
std::string evidence_text(const RankViews& views);

// The latest events, oldest first, each with its time in seconds before the last.
std::string events_text(const RingReader& ring, size_t most = kFlightEvents);

}  // namespace hlat
