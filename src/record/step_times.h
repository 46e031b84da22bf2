// How long the recorded steps took: of metrics.jsonl only what accounting needs, read in one pass at the speed of a scan, since a long run
// has millions of lines.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <vector>

namespace hlat {

struct RecordedStep {
  int64_t step = 0;
  double seconds = 0;
  double save_wait_s = 0;  // of a save that ended here: what updates up to this one waited for it
  bool computed = true;    // false: it was left out
};

// The lines of steps, in the order of the file; other lines and parts of lines are left out. No file: none.
std::vector<RecordedStep> read_step_times(const std::filesystem::path& metrics);

// When a file was last written to, seconds since 1970; 0: there is none.
double written_at(const std::filesystem::path& file);

inline constexpr double kSlowFactor = 1.5;  // a step is slow that takes so many medians

struct StepSplit {
  double seconds = 0;  // of all steps
  double median = 0;   // of those that were computed
  double saves = 0;    // of that: updates that waited for saves
  double slow = 0;     // above the median, of slow steps; not of those that waited for a save
  double first = 0;    // the same of first steps, which start libraries
};

// first: steps that are the first of a process.
StepSplit split_steps(const std::vector<RecordedStep>& steps, const std::set<int64_t>& first);

}  // namespace hlat
