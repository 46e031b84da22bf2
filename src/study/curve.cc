#include "study/curve.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

namespace hlat {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kFewest = 20;

// Of the line fitted to (x, y), as its value at `at` and its slope.
struct LineFit {
  double value = 0, slope = 0;
};

LineFit fit_line(std::span<const double> x, std::span<const double> y, double at) {
  const auto n = static_cast<double>(y.size());
  const double mean_x = std::accumulate(x.begin(), x.end(), 0.0) / n, mean_y = std::accumulate(y.begin(), y.end(), 0.0) / n;
  double xx = 0, xy = 0;
  for (size_t i = 0; i < y.size(); ++i) xx += (x[i] - mean_x) * (x[i] - mean_x), xy += (x[i] - mean_x) * (y[i] - mean_y);
  const double slope = xx > 0 ? xy / xx : 0;
  return {mean_y + slope * (at - mean_x), slope};
}

std::vector<double> places(size_t count) {
  std::vector<double> x(count);
  std::iota(x.begin(), x.end(), 0.0);
  return x;
}

std::vector<double> part(std::span<const double> values, double begin, double end) {
  const auto n = static_cast<double>(values.size());
  return {values.begin() + static_cast<std::ptrdiff_t>(begin * n), values.begin() + static_cast<std::ptrdiff_t>(end * n)};
}

// Medians of the values i-16 .. i+16, at the ends of those that there are.
std::vector<double> smooth(std::span<const double> values) {
  constexpr size_t kHalf = 16;
  std::vector<double> out;
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t begin = i < kHalf ? 0 : i - kHalf, end = std::min(values.size(), i + kHalf + 1);
    out.push_back(curve_median({values.begin() + static_cast<std::ptrdiff_t>(begin), values.begin() + static_cast<std::ptrdiff_t>(end)}));
  }
  return out;
}

double number_at(const nlohmann::json& object, const char* key) {
  const auto value = object.find(key);
  return value != object.end() && value->is_number() ? value->get<double>() : kNaN;
}

void read_monitors(const nlohmann::json& line, RunCurve& out) {
  const auto monitors = line.find("monitors");
  if (monitors == line.end() || !monitors->is_object()) return;
  if (const double drift = number_at(*monitors, "drift"); std::isfinite(drift)) out.drift.push_back(drift);
  const auto unchanged = monitors->find("unchanged");
  if (unchanged == monitors->end() || !unchanged->is_array()) return;
  double sum = 0, count = 0;
  for (const auto& share : *unchanged)
    if (share.is_number()) sum += share.get<double>(), ++count;
  if (count == 0) return;
  out.unchanged.push_back(sum / count);
  out.unchanged_step.push_back(out.step.back());
}

}  // namespace

double curve_median(std::vector<double> values) {
  if (values.empty()) return kNaN;
  const size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle), values.end());
  const double upper = values[middle];
  if (values.size() % 2 == 1) return upper;
  return (*std::max_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle)) + upper) / 2;
}

double final_value(std::span<const double> values) {
  if (values.empty()) return kNaN;
  const size_t count = std::min(values.size(), std::clamp<size_t>(values.size() / 20, 20, 100));
  const auto last = values.last(count);
  return std::accumulate(last.begin(), last.end(), 0.0) / static_cast<double>(count);
}

double noise_around_curve(std::span<const double> values) {
  const size_t n = values.size();
  if (n < kFewest) return kNaN;
  const size_t half = n < 100 ? std::max<size_t>(2, n / 8) : 25, width = 2 * half + 1;
  const std::vector<double> x = places(width);
  double squares = 0, count = 0;
  for (size_t i = std::max(n / 2, half); i + half < n; ++i) {
    const double residual = values[i] - fit_line(x, values.subspan(i - half, width), static_cast<double>(half)).value;
    squares += residual * residual, ++count;
  }
  return std::sqrt(squares / count / (1 - 1 / static_cast<double>(width)));
}

Growth growth_of(std::span<const double> values) {
  const size_t n = values.size();
  if (n < kFewest) return {kNaN, kNaN};
  constexpr size_t kParts = 10;
  const std::span<const double> last = values.subspan(n / 2);
  std::vector<double> x, y;
  for (size_t p = 0; p < kParts; ++p) {
    const size_t begin = last.size() * p / kParts, end = last.size() * (p + 1) / kParts;
    if (begin == end) continue;
    std::vector<double> logs;
    for (size_t i = begin; i < end; ++i) logs.push_back(std::log(last[i]));
    x.push_back(static_cast<double>(begin + end - 1) / 2);
    y.push_back(curve_median(std::move(logs)));
  }
  return {1000 * fit_line(x, y, 0).slope, curve_median(part(values, 0.9, 1)) / curve_median(part(values, 0.45, 0.55))};
}

std::optional<size_t> divergence(std::span<const double> losses, std::span<const double> norms) {
  constexpr double kRise = 0.5;
  size_t finite = 0;
  while (finite < losses.size() && std::isfinite(losses[finite]) && std::isfinite(norms[finite])) ++finite;
  const std::vector<double> curve = smooth(losses.first(finite));
  const size_t stretch = std::max<size_t>(50, losses.size() / 20);
  double least = std::numeric_limits<double>::infinity();
  size_t above = 0;  // values in a row
  for (size_t i = 0; i < finite; ++i) {
    above = curve[i] > least + kRise ? above + 1 : 0;
    if (above >= stretch) return i + 1 - stretch;
    least = std::min(least, curve[i]);
  }
  // A stretch that ends in a value that is not finite is the beginning of that divergence.
  if (finite < losses.size()) return finite - above;
  return std::nullopt;
}

RunCurve read_curve(const std::filesystem::path& metrics) {
  RunCurve out;
  std::ifstream in(metrics, std::ios::binary);
  for (std::string text; std::getline(in, text) && !in.eof();) {
    const auto line = nlohmann::json::parse(text, nullptr, false);
    if (!line.is_object() || !line.contains("tokens") || !line.contains("grad_norm")) continue;
    const double step = number_at(line, "step"), tokens = number_at(line, "tokens");
    if (!std::isfinite(step) || !std::isfinite(tokens)) continue;
    out.step.push_back(static_cast<int64_t>(step));
    out.tokens.push_back(static_cast<int64_t>(tokens));
    out.loss.push_back(number_at(line, "loss"));
    out.grad_norm.push_back(number_at(line, "grad_norm"));
    out.tokens_per_s.push_back(number_at(line, "tokens_per_s"));
    out.step_s.push_back(number_at(line, "step_s"));
    out.comm_s.push_back(number_at(line, "comm_s"));
    out.comm_wait_s.push_back(number_at(line, "comm_wait_s"));
    if (const double val = number_at(line, "val_loss"); std::isfinite(val)) out.val_loss = val;
    read_monitors(line, out);
  }
  return out;
}

std::map<std::string, int64_t> read_alarms(const std::filesystem::path& events) {
  std::map<std::string, int64_t> count;
  std::set<std::pair<std::string, double>> seen;
  std::ifstream in(events, std::ios::binary);
  for (std::string text; std::getline(in, text) && !in.eof();) {
    const auto line = nlohmann::json::parse(text, nullptr, false);
    if (!line.is_object()) continue;
    const auto is_alarm = [&](const char* key) { return line.contains(key) && line[key] == "alarm"; };
    if (!is_alarm("kind") && !is_alarm("event")) continue;
    const std::string rule = line.contains("rule") && line["rule"].is_string() ? line["rule"].get<std::string>() : "unnamed";
    if (seen.emplace(rule, number_at(line, "step")).second) ++count[rule];
  }
  return count;
}

}  // namespace hlat
