#include "plan/cost.h"

#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace hlat {

namespace {

constexpr double kJoulesPerKwh = 3.6e6;

CostFigure figure_of(const std::optional<double>& value, const std::string& key) {
  return value ? CostFigure::known(*value) : CostFigure::unknown(key);
}

[[noreturn]] void no_tokens(std::string_view key, std::string_view text, std::string_view why) {
  fail<UsageError>("{} = {}: {}; right is a whole number of tokens, also with K, M, B or T after it: 600B, 1.8T", key, text, why);
}

// 1e3 for K and so on; 0: no such letter.
double token_scale(char letter) {
  static constexpr std::string_view kLetters = "kmbt";
  static constexpr std::array<double, 4> kScales{1e3, 1e6, 1e9, 1e12};
  const size_t at = kLetters.find(letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter);
  return at == std::string_view::npos ? 0 : kScales[at];
}

// Three digits that count, and all before the point.
std::string three_or_more(double x) { return x >= 99.95 ? fmt::format("{:.0f}", x) : fmt::format("{:.3g}", x); }

std::string with_commas(double whole) {
  std::string digits = fmt::format("{:.0f}", whole);
  for (auto at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3) digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

}  // namespace

double CostFigure::value() const {
  HLAT_CHECK(value_.has_value(), "{} is not known", missing_);
  return *value_;
}

double cost_per_4m_tokens(double dollars_per_node_hour, int64_t nodes, double tokens_per_s) {
  HLAT_CHECK(tokens_per_s > 0 && nodes > 0, "{} tokens/s on {} nodes", tokens_per_s, nodes);
  return dollars_per_node_hour * static_cast<double>(nodes) / (tokens_per_s * 3600) * kCptTokens;
}

RunCost cost_of(const CostAsk& ask, const NodePrice& price, const NodePower& power) {
  HLAT_CHECK(ask.tokens_per_s > 0 && ask.nodes > 0, "{} tokens/s on {} nodes", ask.tokens_per_s, ask.nodes);
  HLAT_CHECK(ask.tokens >= 0 && ask.goodput > 0 && ask.goodput <= 1, "{} tokens at goodput {}", ask.tokens, ask.goodput);
  const double seconds = ask.tokens / (ask.tokens_per_s * ask.goodput), nodes = static_cast<double>(ask.nodes);
  const CostFigure hourly = figure_of(price.dollars_per_hour, price.key), watts = figure_of(power.watts, power.watts_key);
  const CostFigure grams = figure_of(power.grams_per_kwh, power.grams_key);
  const CostFigure kwh = watts.times(nodes * seconds / kJoulesPerKwh);
  return {.cpt = hourly.has_value() ? CostFigure::known(cost_per_4m_tokens(hourly.value(), ask.nodes, ask.tokens_per_s)) : hourly,
          .dollars = hourly.times(nodes * seconds / 3600),
          .days = seconds / 86400,
          .joules_per_token = watts.times(nodes / ask.tokens_per_s),
          .kwh = kwh,
          .tonnes = kwh.has_value() ? grams.times(kwh.value() / 1e6) : kwh};
}

int64_t parse_tokens(std::string_view text, std::string_view key) {
  constexpr double kMost = 1e15;  // a double holds every whole number up to it
  const double scale = text.empty() ? 0 : token_scale(text.back());
  const std::string_view digits = scale > 0 ? text.substr(0, text.size() - 1) : text;
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::fixed);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(value))
    no_tokens(key, text, "not a number of tokens");
  const double tokens = value * (scale > 0 ? scale : 1), whole = std::round(tokens);
  if (whole < 1) no_tokens(key, text, "less than one token");
  if (whole > kMost) no_tokens(key, text, "more than 1000T");
  // 1.8 has no exact double, so what is left over is compared with what rounding can make.
  if (std::abs(tokens - whole) > 1e-14 * whole) no_tokens(key, text, "not a whole number of tokens");
  return static_cast<int64_t>(whole);
}

std::string dollar_words(double dollars) {
  if (!std::isfinite(dollars)) return "$" + fmt::format("{}", dollars);
  if (dollars < 0) return "-" + dollar_words(-dollars);
  if (dollars >= 999.995) return "$" + with_commas(dollars);
  if (dollars >= 0.995 || dollars == 0) return fmt::format("${:.2f}", dollars);
  // Three digits that count, without an exponent.
  const int decimals = 2 - static_cast<int>(std::floor(std::log10(dollars)));
  return fmt::format("${:.{}f}", dollars, decimals);
}

std::string dollar_words(const CostFigure& dollars) { return dollars.has_value() ? dollar_words(dollars.value()) : unknown_words(dollars); }

std::string unknown_words(const CostFigure& figure) { return fmt::format("unknown: give {}", figure.missing()); }

nlohmann::ordered_json figure_json(const CostFigure& figure) {
  return figure.has_value() ? nlohmann::ordered_json(figure.value()) : nlohmann::ordered_json(unknown_words(figure));
}

std::string energy_words(const RunCost& cost) {
  if (!cost.kwh.has_value()) return "energy " + unknown_words(cost.kwh);
  const std::string energy =
      three_or_more(cost.joules_per_token.value()) + " J per token, " + three_or_more(cost.kwh.value() / 1000) + " MWh";
  if (!cost.tonnes.has_value()) return energy + ", CO2 " + unknown_words(cost.tonnes);
  return energy + ", " + three_or_more(cost.tonnes.value()) + " t CO2";
}

}  // namespace hlat
