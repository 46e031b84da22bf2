// The rule about updates: they are arithmetic, so what they are off by, beyond rounding, has no noise.
#include <fmt/format.h>

#include "alarm/rules.h"

namespace hlat {

namespace {

// Rounding is taken out of the measurement. Without bias correction an update is off by 3 % at step 10, some 10 % at step 20 and 1 % at
// step 70 (beta2 0.95), and by more for longer with a larger beta2.
constexpr double kUpdateError = 0.002;

}  // namespace

Look look_at_wrong_update(const AlarmView& view, AlarmMemory&) {
  const Monitors* own = view.monitors();
  if (own == nullptr || !own->update_error) return {};
  const double error = *own->update_error;
  if (error <= kUpdateError) return {.looked = true};
  return {
      .looked = true,
      .found = Finding{.value = error,
                       .limit = kUpdateError,
                       .since = view.metrics.step,
                       .evidence = fmt::format("updates of sampled weights differ by {:.2g}% from what AdamW with bias correction makes of "
                                               "their moments at learning rate {:.3g}; rounding is taken out",
                                               100 * error, view.metrics.lr)}};
}

}  // namespace hlat
