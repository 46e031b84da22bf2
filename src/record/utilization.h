// Shares of the measured matmul rate (MFU, HFU), shown only where they mean something: not above 1, which says that the rate was measured
// while the machine was busy with something else, and not of a first step, which starts libraries and touches memory.
#pragma once

#include <cstdint>
#include <string>

namespace hlat {

// timed_steps: how many steps the share is a mean of, the first of the process left out.
bool is_utilization(double share, int64_t timed_steps = 1);

// "24.7k tokens/s, MFU 61.2%, HFU 63.0% of the measured matmul rate", or why it has no shares.
std::string speed_text(double tokens_per_s, double mfu, double hfu, int64_t timed_steps = 1);

}  // namespace hlat
