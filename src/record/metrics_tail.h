// The end of metrics.jsonl, read from behind: a run may have written millions of lines, and only its latest matter when it goes on. A line
// of a step has "step" and "tokens"; other lines stay with the step line before them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "record/previous_run.h"

namespace hlat {

// Of the last whole line of a step; none: there is no file or no such line.
struct LastStep {
  int64_t step = 0;
  std::optional<double> loss = {};  // none: not finite
  std::optional<double> tokens_per_s = {};
};
std::optional<LastStep> last_recorded(const std::filesystem::path& metrics);
std::optional<int64_t> last_recorded_step(const std::filesystem::path& metrics);

struct MetricsCut {
  std::optional<int64_t> kept;                 // the last step that stays
  std::optional<int64_t> first_cut, last_cut;  // steps that were set aside
  double cut_s = 0;                            // what they had taken
};

// Lines past `step` go to previous_N/metrics.jsonl, and part of a line at the end, left by a process that died, goes away. The copy is on
// disk before the file is cut: whoever is killed in between does it again at the next start.
MetricsCut cut_metrics(const std::filesystem::path& metrics, int64_t step, PreviousRun& previous);

}  // namespace hlat
