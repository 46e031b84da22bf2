// Faults that a config plants for hlat check, in fault.inject: "check_matmul rank=2; check_slow rank=1". The kinds are
//   check_matmul  one element of every product is off by one      check_comm  a bit of every message that comes in is flipped
//   check_slow    the rank sleeps in products and before messages  check_disk  the disk has no room left
#pragma once

#include <string_view>

#include "config/config.h"

namespace hlat {

bool planted(const Config& config, std::string_view kind, int rank);

}  // namespace hlat
