// A simulated step as a Chrome trace: opens in Perfetto (ui.perfetto.dev) or chrome://tracing. A process for each pipeline stage, with a
// lane of its device and one of the collectives that overlap with it.
#pragma once

#include <string>

#include "plan/simulate.h"

namespace hlat {

std::string chrome_trace(const StepTime& time);  // of a simulation that kept its spans

}  // namespace hlat
