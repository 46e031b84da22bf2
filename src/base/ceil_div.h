// How many parts of b hold a; neither is negative.
#pragma once

#include <cstdint>

namespace hlat {

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace hlat
