#include "train/fp8_calibration.h"

#include <fmt/format.h>

#include <cmath>

#include "train/step_monitor.h"

namespace hlat {

std::string Fp8Calibrated::words() const {
  if (!finite)
    return fmt::format("FP8: scales are not measured: the batch met values that are not finite, in {} passes; the next one is measured",
                       passes);
  return fmt::format("FP8: scales measured on the first batch in {} passes{}", passes,
                     saturated ? "; values of the last one still saturated" : "");
}

Fp8Calibration::Fp8Calibration(Executor& executor, int64_t step) : executor_(executor), step_(step) { executor_.fp8().begin_calibration(); }

std::vector<float> Fp8Calibration::scales() const {
  const Fp8State& state = executor_.params().fp8_state();
  std::vector<float> values(static_cast<size_t>(state.units_in_passes() * kFp8Scale));
  executor_.device().download(values.data(), state.scales.rows(0, state.units_in_passes()));
  return values;
}

// A pass mends at least what the first operand that saturated has hidden, so few are needed; a model that is not finite, or oscillates, is
// left to the checks of the step.
bool Fp8Calibration::end_pass() {
  enum Number : size_t { kSaturated, kMoved, kNotFinite, kNumbers };
  const Fp8State& state = executor_.params().fp8_state();
  std::vector<Fp8Seen> met(static_cast<size_t>(state.units_in_passes()));
  executor_.device().download(met.data(), state.met_in_passes());
  const std::vector<float> before = scales();
  executor_.fp8().measure_passes(step_);
  const std::vector<float> after = scales();
  executor_.mesh().check();
  std::vector<double> numbers(kNumbers), none;
  for (size_t u = 0; u < met.size(); ++u) {
    const float ratio = after[u * kFp8Scale] / before[u * kFp8Scale];
    numbers[kSaturated] += met[u].saturated;
    numbers[kMoved] += ratio > 2 || ratio < 0.5f ? 1 : 0;
    numbers[kNotFinite] += std::isfinite(met[u].largest) ? 0 : 1;
  }
  combine_over(executor_.mesh(), numbers, none);
  ++result_.passes;
  result_.saturated = numbers[kSaturated] > 0;
  result_.finite = numbers[kNotFinite] == 0;
  const bool fits = numbers[kSaturated] == 0 && numbers[kMoved] == 0;
  if (!fits && result_.passes < executor_.config().model.layers + 2) return false;
  if (result_.finite) executor_.fp8().end_calibration();  // else nothing is learned of this batch
  return true;
}

}  // namespace hlat
