// Models side by side: the first against each of the others. Where both have per-sample logs of a task, the test is one of pairs, on the
// examples that both have answered; else it is made from the standard errors; published numbers are compared without one.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "eval/results.h"

namespace hlat {

enum class TestKind : uint8_t {
  none,      // errors are not known
  mcnemar,   // exact, on pairs of right and wrong
  paired,    // z of the mean difference of pairs
  unpaired,  // z from both standard errors
};
std::string_view name_of(TestKind kind);

// The first model less another one.
struct Difference {
  double value = std::numeric_limits<double>::quiet_NaN();  // NaN: one of them has no such number
  double p = std::numeric_limits<double>::quiet_NaN();      // two-sided; NaN: no test
  TestKind test = TestKind::none;
  int64_t pairs = 0;
};

struct ComparedRow {
  std::string name, title;                          // of the task, or of the group
  bool group = false;                               // the mean of a group
  bool headline = true;                             // the metric of its task that counts
  MetricResult metric;                              // of the first model that has it, for key and direction
  std::vector<std::optional<MetricResult>> values;  // by model
  std::vector<Difference> differences;              // of the first to each other model; one fewer than models
};

// Headline metrics of single tasks that both models have, and of groups where one has no single tasks.
struct WinCount {
  int64_t wins = 0, losses = 0, ties = 0;    // of the first
  int64_t clear_wins = 0, clear_losses = 0;  // with p below kClear
  int64_t all() const { return wins + losses + ties; }
};
inline constexpr double kClear = 0.05;

struct Comparison {
  std::vector<std::string> models;
  std::vector<ComparedRow> rows;  // groups in the table's order, each before its tasks
  std::vector<WinCount> wins;     // of the first against each other
};

Comparison compare(std::span<const Results> models);  // two at least

}  // namespace hlat
