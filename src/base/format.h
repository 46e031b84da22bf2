// Numbers for people: sizes, counts and times in few characters.
#pragma once

#include <cstdint>
#include <string>

namespace hlat {

std::string format_bytes(uint64_t bytes);     // "512 B", "1.2 GiB"
std::string format_count(double count);       // "950", "12.3k", "1.40M", "6.74B"; three digits
std::string format_flops(double flops);       // "714 MFLOP", "1.80 EFLOP"
std::string format_duration(double seconds);  // "0.35s", "4.2s", "1m 23s", "2h 05m", "3d 04h"

}  // namespace hlat
