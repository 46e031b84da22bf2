// Models side by side: the first against each of the others (difference.h), by groups and tasks, with win counts. Published means are
// compared without a test, and only with a mean over all tasks of the group.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "eval/difference.h"
#include "eval/results.h"

namespace hlat {

struct ComparedRow {
  std::string name, title;              // of the task, or of the group
  bool group = false;                   // the mean of a group
  bool headline = true;                 // the metric of its task that counts
  MetricResult metric;                  // of the first model that has it, for key and direction; no key: no model has a number
  std::vector<Measured> values;         // by model
  std::vector<Difference> differences;  // of the first to each other model; one fewer than models
};

// Headline metrics of single tasks that both models have, and of groups where one has no single tasks.
struct WinCount {
  int64_t wins = 0, losses = 0, ties = 0;    // of the first
  int64_t tested = 0;                        // of them, those with a test
  int64_t clear_wins = 0, clear_losses = 0;  // with p below kClear
  int64_t all() const { return wins + losses + ties; }
};
inline constexpr double kClear = 0.05;

struct Comparison {
  std::vector<std::string> models;
  std::vector<ComparedRow> rows;  // groups in the table's order, each before its tasks; of a task its headline first
  std::vector<WinCount> wins;     // of the first against each other
};

Comparison compare(std::span<const Results> models);  // two at least

}  // namespace hlat
