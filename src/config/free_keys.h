// Keys that decide nothing of what a run computes: folders, records, saves, threads. Runs that differ in these alone are one run.
#pragma once

#include <string_view>

namespace hlat {

bool is_free_key(std::string_view key);

}  // namespace hlat
