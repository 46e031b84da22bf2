#include "record/utilization.h"

#include <fmt/format.h>

#include "base/format.h"

namespace hlat {

bool is_utilization(double share, int64_t timed_steps) { return timed_steps > 0 && share > 0 && share <= 1; }

std::string speed_text(double tokens_per_s, double mfu, double hfu, int64_t timed_steps) {
  const std::string speed = format_count(tokens_per_s) + " tokens/s";
  if (timed_steps == 0) return speed + " in the first step, which starts libraries too; later steps would tell more";
  if (!is_utilization(mfu, timed_steps) || !is_utilization(hfu, timed_steps))
    return speed + ", MFU unknown: faster than the measured matmul rate, which was disturbed or does not suit this model";
  return fmt::format("{}, MFU {:.1f}%, HFU {:.1f}% of the measured matmul rate", speed, 100 * mfu, 100 * hfu);
}

}  // namespace hlat
