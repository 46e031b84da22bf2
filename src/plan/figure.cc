#include "plan/figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include "base/error.h"

namespace hlat {
namespace {

struct UnitWord {
  std::string_view word;
  double factor;
  bool written = false;  // used in text that we write
};

constexpr double kKi = 1024.0, kMi = kKi * kKi, kGi = kMi * kKi, kTi = kGi * kKi;

constexpr std::array<UnitWord, 10> kBytes = {{{"TB", 1e12},
                                              {"GiB", kGi, true},
                                              {"GB", 1e9, true},
                                              {"MiB", kMi, true},
                                              {"MB", 1e6, true},
                                              {"KiB", kKi},
                                              {"kB", 1e3, true},
                                              {"KB", 1e3},
                                              {"TiB", kTi},
                                              {"B", 1, true}}};
constexpr std::array<UnitWord, 10> kSeconds = {{{"d", 86400},
                                                {"days", 86400},
                                                {"h", 3600, true},
                                                {"hours", 3600},
                                                {"min", 60},
                                                {"s", 1, true},
                                                {"ms", 1e-3, true},
                                                {"us", 1e-6, true},
                                                {"ns", 1e-9, true},
                                                {"seconds", 1}}};
constexpr std::array<UnitWord, 9> kByteRates = {{{"TB/s", 1e12, true},
                                                 {"GB/s", 1e9, true},
                                                 {"MB/s", 1e6, true},
                                                 {"kB/s", 1e3},
                                                 {"GiB/s", kGi},
                                                 {"MiB/s", kMi},
                                                 {"Gbit/s", 1e9 / 8},
                                                 {"Tbit/s", 1e12 / 8},
                                                 {"B/s", 1, true}}};
constexpr std::array<UnitWord, 5> kFlopRates = {
    {{"PFLOP/s", 1e15}, {"TFLOP/s", 1e12, true}, {"GFLOP/s", 1e9, true}, {"MFLOP/s", 1e6}, {"FLOP/s", 1}}};
constexpr std::array<UnitWord, 1> kShare = {{{"%", 0.01}}};
constexpr std::array<UnitWord, 2> kDollars = {{{"$/h", 1}, {"USD/h", 1}}};
constexpr std::array<UnitWord, 3> kWatts = {{{"kW", 1e3, true}, {"W", 1, true}, {"MW", 1e6}}};
constexpr std::array<UnitWord, 2> kGrams = {{{"g/kWh", 1}, {"kg/kWh", 1e3}}};

std::span<const UnitWord> words_of(Unit unit) {
  switch (unit) {
    case Unit::bytes: return kBytes;
    case Unit::seconds: return kSeconds;
    case Unit::bytes_per_s: return kByteRates;
    case Unit::flops_per_s: return kFlopRates;
    case Unit::share: return kShare;
    case Unit::dollars_per_hour: return kDollars;
    case Unit::watts: return kWatts;
    case Unit::grams_per_kwh: return kGrams;
  }
  return {};
}

}  // namespace

double Figure::need(std::string_view file) const {
  if (!value)
    fail<UsageError>("{}: {} is empty: {} is not known. Fill in {{value, source, date}}, with a value such as {}, in a copy of the file",
                     file, key, meaning, example_of(unit));
  return *value;
}

void Figure::set(double v, std::string from, std::string when) {
  value = v;
  source = std::move(from);
  date = std::move(when);
}

std::optional<double> parse_quantity(std::string_view text, Unit unit) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || !std::isfinite(number)) return std::nullopt;
  std::string_view word(rest, static_cast<size_t>(end - rest));
  if (word.empty()) return number;
  while (!word.empty() && word.front() == ' ') word.remove_prefix(1);
  for (const UnitWord& w : words_of(unit))
    if (w.word == word) return number * w.factor;
  return std::nullopt;
}

std::string quantity_text(double value, Unit unit) {
  std::string best = fmt::format("{}", value);
  if (value == 0) return best;
  for (const UnitWord& w : words_of(unit)) {
    if (!w.written || std::abs(value) < w.factor || std::abs(value) >= 2000 * w.factor) continue;
    for (const int digits : {4, 6, 9, 17}) {
      const std::string text = fmt::format("{:.{}g} {}", value / w.factor, digits, w.word);
      if (parse_quantity(text, unit) != value) continue;
      // The unit in which the number is shortest: 139.8 GiB rather than 150109107.19 kB.
      if (const bool plain = best.find(' ') == std::string::npos; plain || text.size() < best.size()) best = text;
      break;
    }
  }
  return best;
}

double rounded_quantity(double value, Unit unit) {
  double factor = 0;
  for (const UnitWord& w : words_of(unit))
    if (w.written && std::abs(value) >= w.factor) factor = std::max(factor, w.factor);
  if (factor == 0) factor = 1;
  return parse_quantity(fmt::format("{:.4g}", value / factor), unit).value_or(0) * factor;
}

std::string_view example_of(Unit unit) {
  switch (unit) {
    case Unit::bytes: return "139.8 GiB";
    case Unit::seconds: return "900 us";
    case Unit::bytes_per_s: return "50 GB/s";
    case Unit::flops_per_s: return "665 TFLOP/s";
    case Unit::share: return "0.35";
    case Unit::dollars_per_hour: return "21.50";
    case Unit::watts: return "10.2 kW";
    case Unit::grams_per_kwh: return "380 g/kWh";
  }
  return "";
}

}  // namespace hlat
