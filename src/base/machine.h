// This machine: its name and its clock.
#pragma once

#include <string>

namespace hlat {

std::string host_name();  // "localhost" when it has none
double now_s();           // seconds on a clock that is never set back

}  // namespace hlat
