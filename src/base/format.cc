#include "base/format.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace hlat {
namespace {

// Three digits; `x` is below 1000 but may round up to it.
std::string three_digits(double x) {
  return x < 9.995 ? fmt::format("{:.2f}", x) : x < 99.95 ? fmt::format("{:.1f}", x) : fmt::format("{:.0f}", x);
}

}  // namespace

std::string format_bytes(uint64_t bytes) {
  static constexpr std::array<const char*, 6> kUnits{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double x = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  // 1023.95 would print as 1024.0.
  for (; x >= 1023.95 && unit + 1 < kUnits.size(); ++unit) x /= 1024;
  return fmt::format("{:.1f} {}", x, kUnits[unit]);
}

std::string format_count(double count) {
  static constexpr std::array<const char*, 6> kUnits{"", "k", "M", "B", "T", "Q"};
  if (!std::isfinite(count)) return fmt::format("{}", count);
  if (count < 0) return "-" + format_count(-count);
  if (count < 999.5) return count == std::floor(count) ? fmt::format("{:.0f}", count) : three_digits(count);
  size_t unit = 0;
  for (; count >= 999.5 && unit + 1 < kUnits.size(); ++unit) count /= 1000;
  return three_digits(count) + kUnits[unit];
}

std::string format_flops(double flops) {
  static constexpr std::array<const char*, 8> kUnits{"", "k", "M", "G", "T", "P", "E", "Z"};
  size_t unit = 0;
  for (; flops >= 999.5 && unit + 1 < kUnits.size(); ++unit) flops /= 1000;
  return fmt::format("{} {}FLOP", three_digits(flops), kUnits[unit]);
}

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds)) return "?";
  if (seconds < 0) return "-" + format_duration(-seconds);
  if (seconds < 0.995) return fmt::format("{:.2f}s", seconds);
  if (seconds < 9.95) return fmt::format("{:.1f}s", seconds);
  const auto s = static_cast<int64_t>(std::llround(seconds));
  if (s < 60) return fmt::format("{}s", s);
  if (s < 3600) return fmt::format("{}m {:02}s", s / 60, s % 60);
  if (s < 86400) return fmt::format("{}h {:02}m", s / 3600, s % 3600 / 60);
  return fmt::format("{}d {:02}h", s / 86400, s % 86400 / 3600);
}

}  // namespace hlat
