#include "burnin/check_run.h"

#include <fmt/format.h>

namespace hlat {

std::string figure(double value) { return value < 999.5 ? fmt::format("{:.3g}", value) : fmt::format("{:.0f}", value); }

}  // namespace hlat
