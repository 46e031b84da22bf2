// Statistics that single values cannot move far: a line through medians of slopes (Theil and Sen), and histories of medians over blocks of
// steps. All medians of alarms are upper ones.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "alarm/alarm_state.h"

namespace hlat {

// The deviation of single values from the moves between neighbours, of which none counts as more than five typical ones: neither single far
// values nor a level that changes seldom widen it. 0 of fewer than two.
double noise_of(const std::vector<double>& values);
inline constexpr double kErrorOfMedian = 1.25;  // of normal noise: times the deviation over the root of the count

struct RobustLine {
  double slope = 0, at_zero = 0;
  double spread = 0;  // of the values around it
  double at(double x) const { return at_zero + slope * x; }
};
RobustLine line_through(std::span<const double> x, std::span<const double> y);  // two points or more

// The latest `count` values of a list in a rule's memory.
std::vector<double>& keep(AlarmMemory& memory, const std::string& name, double value, size_t count);

// Medians over blocks of `steps` values, the latest `blocks` of them, with the last step of each.
struct BlockHistory {
  const std::vector<double>*ends, *medians;
  bool complete;  // this value completed a block
};
BlockHistory add_to_blocks(AlarmMemory& memory, const std::string& name, double step, double value, size_t steps, size_t blocks);

}  // namespace hlat
