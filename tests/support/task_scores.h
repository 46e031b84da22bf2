// Results of a task with one number, for tests.
#pragma once

#include <string>

#include "eval/results.h"

namespace hlat::test {

inline TaskScores task_scores(const std::string& name, const std::string& group, double value, double error, bool higher = true) {
  TaskScores t;
  t.name = name, t.title = name, t.group = group;
  t.metrics = {{.key = "acc,none", .value = value, .error = error, .higher_is_better = higher}};
  t.examples = t.available = 100;
  return t;
}

}  // namespace hlat::test
