#include "optim/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace hlat {

double learning_rate(const OptimConfig& o, int64_t step, int64_t total) {
  if (step < o.warmup) return o.lr * static_cast<double>(step) / static_cast<double>(o.warmup);
  const double length = static_cast<double>(std::max<int64_t>(total - o.warmup, 1));
  const double p = std::clamp(static_cast<double>(step - o.warmup) / length, 0.0, 1.0);
  const double wave = 0.5 * (1.0 + std::cos(std::numbers::pi * p));
  double factor = 1.0;
  switch (o.schedule) {
    case ScheduleKind::cosine_clamped: factor = std::max(o.min_ratio, wave); break;
    case ScheduleKind::cosine: factor = o.min_ratio + (1.0 - o.min_ratio) * wave; break;
    case ScheduleKind::linear: factor = 1.0 - (1.0 - o.min_ratio) * p; break;
    case ScheduleKind::constant: break;
    case ScheduleKind::warmup_stable_decay: {
      const double decay = std::max(1.0, o.decay_share * static_cast<double>(total));
      const double left = static_cast<double>(total - step);
      factor = left >= decay ? 1.0 : std::max(0.0, left / decay) * (1.0 - o.min_ratio) + o.min_ratio;
      break;
    }
  }
  return o.lr * factor;
}

}  // namespace hlat
