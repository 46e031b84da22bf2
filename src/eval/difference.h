// One number of two models, and whether they differ by more than chance. Where both have per-sample logs of a task, difference and test are
// those of the examples that both have answered; else the difference is that of the numbers, and the test is made from standard errors.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "eval/sample_values.h"

namespace hlat {

enum class TestKind : uint8_t {
  none,      // errors are not known
  mcnemar,   // exact, on pairs of right and wrong
  paired,    // z of the mean difference of pairs
  unpaired,  // z from both standard errors
};
std::string_view name_of(TestKind kind);

// A number of one model.
struct Measured {
  std::optional<MetricResult> metric = {};  // none: the model has no such number
  int64_t examples = 0, available = 0;      // of a task; of the mean of a group, its tasks. 0: not known
  bool failed = false;                      // its task was tried

  bool limited() const { return examples > 0 && examples < available; }
};

// The first model less another one.
struct Difference {
  double value = std::numeric_limits<double>::quiet_NaN();  // NaN: one of them has no such number
  double p = std::numeric_limits<double>::quiet_NaN();      // two-sided; NaN: no test
  TestKind test = TestKind::none;
  int64_t pairs = 0;
};

Difference difference(const Measured& first, const Measured& other);  // of the numbers
// Of the pairs. Where these are not all examples, numbers that are no means over examples (perplexities) have no difference.
Difference difference(const Measured& first, const Measured& other, const SampleValues& first_samples, const SampleValues& other_samples);

}  // namespace hlat
