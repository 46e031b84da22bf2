// A physical or commercial figure of a machine with where it is from and of when. A figure that nobody knows is empty: whoever needs it
// asks for it by its key instead of computing with an invention. Values are in SI units; as text they may have others: "139.8 GiB", "665
// TFLOP/s", "900 us", "35 %".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hlat {

enum class Unit : uint8_t { bytes, seconds, bytes_per_s, flops_per_s, share, dollars_per_hour, watts, grams_per_kwh };

struct Figure {
  std::string key;  // in the file: "links.node.latency"
  Unit unit = Unit::share;
  std::string meaning;  // what to fill in
  std::optional<double> value = {};
  std::string source = {}, date = {};

  bool known() const { return value.has_value(); }
  // UsageError that names the key of `file` where it is empty.
  double need(std::string_view file) const;
  void set(double v, std::string from, std::string when);
  bool operator==(const Figure&) const = default;
};

// A number with or without a unit of this kind; nullopt where it is none, or not finite.
std::optional<double> parse_quantity(std::string_view text, Unit unit);
// Reads back as the identical value.
std::string quantity_text(double value, Unit unit);
double rounded_quantity(double value, Unit unit);  // to four digits in the unit of its text, as many as a measurement knows
std::string_view example_of(Unit unit);            // "50 GB/s": to follow "such as"

}  // namespace hlat
