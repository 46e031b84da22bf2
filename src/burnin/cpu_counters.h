// What the system counts of time that this machine's cores did not give: taken by other virtual machines (steal), by the limit of a
// control group, or by cores that got too hot.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace hlat {

struct CpuCounters {
  double busy = 0, stolen = 0;  // ticks of all cores; busy: all but idle ones
  double throttled_s = 0;       // by the limit of this control group
  int64_t too_hot = 0;          // times that a core lowered its clock
};

CpuCounters read_cpu_counters(const std::filesystem::path& root = "/");

// What between the two was taken from this machine, in words; empty: nothing to speak of.
std::string taken_between(const CpuCounters& before, const CpuCounters& after);

}  // namespace hlat
