// The runs of a study: all combinations of its axes' points that it wants, each with a config that the loader has accepted.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/config.h"
#include "study/study_file.h"

namespace hlat {

struct StudyRun {
  std::string name;                 // "sr+seed=1", its folder too
  std::string row;                  // "sr": the same without axes of seeds; what the table calls it
  std::vector<size_t> points = {};  // by axis
  std::vector<Entry> set = {};
  int64_t ranks = 0;  // as given; 0: as the layout needs
  Origin ranks_at = {};
};

// Seeds change slowest: a study that is cut short has all points with one seed before any point with the next.
std::vector<StudyRun> expand(const Study& study);

// The name of the row that `run` is compared with: the same combination with the baseline's point. Empty: there is none.
std::string baseline_row(const Study& study, const StudyRun& run);

struct PlannedRun {
  StudyRun run;
  Config config;  // run.dir is its folder
  int64_t ranks = 1;
};

// words: `section.key=value` for all runs, from the command line. UsageError with all problems of all runs, each told once.
std::vector<PlannedRun> plan_runs(const Study& study, const std::vector<std::string>& words, const std::filesystem::path& out);

// Those that a name means: of a run, a row or a point, or the value of one. UsageError: no run is called so.
std::vector<PlannedRun> chosen_runs(const Study& study, std::vector<PlannedRun> runs, const std::vector<std::string>& names);

}  // namespace hlat
