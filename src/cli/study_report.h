// The report of a study as one HTML file in its folder: what `hlat report` makes of its runs, under the table of its results.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "study/grid.h"
#include "study/results.h"

namespace hlat {

inline constexpr const char* kStudyReport = "report.html";

// Of the runs that have a step, in their order; those that are in no row of the results, because they cannot be read or are of another
// config, are left out. Returns why nothing was written; empty: it was. A study's results do not fail for it.
std::string write_study_report(const std::filesystem::path& folder, const std::vector<PlannedRun>& runs, const StudyResults& results,
                               const std::vector<std::string>& collect);

}  // namespace hlat
