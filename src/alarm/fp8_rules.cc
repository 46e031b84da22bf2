// The rule about the range of FP8: scales follow the largest values of the steps before, and leave room for them to double. A measurement
// covers all steps since the one before, so one step alone, which the next scales mend, is in one measurement.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "alarm/rules.h"

namespace hlat {

namespace {

constexpr double kFp8InARow = 3;  // measurements
// Values that grow smoothly saturate by ones in millions. Half of the values lost: the largest ones stand far above all others.
constexpr double kFp8Saturated = 1e-3, kFp8Lost = 0.5;

}  // namespace

Look look_at_fp8_range(const AlarmView& view, AlarmMemory& memory) {
  const Monitors* own = view.monitors();
  if (own == nullptr || own->fp8_saturated.empty()) return {};
  constexpr std::array operands = {"inputs", "gradients", "weights"};
  std::vector<double>& off = memory["off"];
  off.resize(2 * operands.size());
  Look look{.looked = true};
  const auto hold = [&](size_t i, const std::vector<double>& shares, double limit, const char* words, double& count) {
    if (i >= shares.size()) return;
    count = shares[i] > limit ? count + 1 : 0;
    if (count < kFp8InARow || look.found) return;
    look.found =
        Finding{.value = shares[i],
                .limit = limit,
                .since = std::max<int64_t>(1, view.metrics.step - static_cast<int64_t>(kFp8InARow) * view.config.monitor.every + 1),
                .evidence = fmt::format("{:.3g}% of the {} of linear layers {}", 100 * shares[i], operands[i], words)};
  };
  for (size_t i = 0; i < operands.size(); ++i) {
    hold(i, own->fp8_saturated, kFp8Saturated, "lie beyond the largest number of FP8", off[i]);
    hold(i, own->fp8_lost, kFp8Lost, "are too small for FP8 and became 0", off[operands.size() + i]);
  }
  return look;
}

}  // namespace hlat
