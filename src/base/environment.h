// The variables of a process, as a function: tests give their own.
#pragma once

#include <functional>

namespace hlat {

// A variable's value, or null when it is not set; std::getenv is one.
using Environment = std::function<const char*(const char*)>;

}  // namespace hlat
