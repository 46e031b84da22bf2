// A run's goodput for people and as JSON; shared by train and runs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "record/goodput.h"

namespace hlat {

// Two lines of a summary; empty for a run that was never restarted and has no launcher.
std::string goodput_text(const RunAccount& run);
// Goodput, wall time and every cause with its seconds and share of the wall time.
std::string goodput_table(const Goodput& g);
nlohmann::ordered_json goodput_json(const Goodput& g);

}  // namespace hlat
