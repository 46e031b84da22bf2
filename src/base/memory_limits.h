// How much memory of the host this process may still take, and how much it has taken. A container's limit is a control group's
// (cgroup v1 or v2); groups are nested and each may have a limit, so every level up to the root counts. Page cache and
// kernel tables that the kernel would drop for a new page are counted as used by a group and are available all the same, as in
// MemAvailable.
#pragma once

#include <cstddef>
#include <filesystem>

namespace hlat {

// The least of what the machine (MemAvailable) and the groups of this process leave. `root`: where /proc and /sys are found.
size_t host_memory_available(const std::filesystem::path& root = "/");

// Resident memory of this process; 0 where the system does not tell.
size_t resident_bytes(const std::filesystem::path& root = "/");       // now
size_t peak_resident_bytes(const std::filesystem::path& root = "/");  // the most so far

}  // namespace hlat
