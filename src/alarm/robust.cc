#include "alarm/robust.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/median.h"

namespace hlat {

namespace {
constexpr double kMostMove = 5;  // times the typical one
}

double noise_of(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  std::vector<double> moves;
  for (size_t i = 1; i < values.size(); ++i) moves.push_back(std::abs(values[i] - values[i - 1]));
  const double typical = upper_median(moves);
  // 3.4 deviations of normal moves: of these it takes next to nothing. Where most neighbours are equal none is typical.
  const double most = typical > 0 ? kMostMove * typical : INFINITY;
  double squares = 0;
  for (const double move : moves) squares += std::min(move, most) * std::min(move, most);
  return std::sqrt(squares / (2 * static_cast<double>(moves.size())));
}

RobustLine line_through(std::span<const double> x, std::span<const double> y) {
  HLAT_CHECK(x.size() == y.size() && x.size() > 1, "{} and {} numbers for a line", x.size(), y.size());
  std::vector<double> slopes, rests;
  for (size_t i = 0; i < x.size(); ++i)
    for (size_t j = 0; j < i; ++j) slopes.push_back((y[i] - y[j]) / (x[i] - x[j]));
  RobustLine line;
  line.slope = upper_median(std::move(slopes));
  for (size_t i = 0; i < x.size(); ++i) rests.push_back(y[i] - line.slope * x[i]);
  line.at_zero = upper_median(rests);
  line.spread = median_deviation(rests, line.at_zero);
  return line;
}

std::vector<double>& keep(AlarmMemory& memory, const std::string& name, double value, size_t count) {
  std::vector<double>& values = memory[name];
  values.push_back(value);
  if (values.size() > count) values.erase(values.begin(), values.end() - static_cast<std::ptrdiff_t>(count));
  return values;
}

BlockHistory add_to_blocks(AlarmMemory& memory, const std::string& name, double step, double value, size_t steps, size_t blocks) {
  std::vector<double>& open = memory[name + ".open"];
  open.push_back(value);
  const bool complete = open.size() >= steps;
  if (complete) {
    keep(memory, name + ".medians", upper_median(std::move(open)), blocks);
    keep(memory, name + ".ends", step, blocks);
    memory[name + ".open"].clear();
  }
  return {.ends = &memory[name + ".ends"], .medians = &memory[name + ".medians"], .complete = complete};
}

}  // namespace hlat
