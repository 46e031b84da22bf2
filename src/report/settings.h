// The keys in which the runs of a report differ: what their comparison is about.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "report/report_run.h"

namespace hlat {

struct Setting {
  std::string key;
  std::vector<std::string> values;  // by run; empty: its config is not known
};

// In the order of the first config. Folders, records, saves and the reading of data, which a run's numbers and steps do not depend on, are
// left out; threads, backend and transport are not.
std::vector<Setting> differing_settings(const std::vector<ReportRun>& runs);

nlohmann::ordered_json settings_json(const std::vector<ReportRun>& runs);

// A row for each run, a column for each key, as many beside each other as the width allows; 0: any. Empty: they do not differ.
std::string settings_text(const std::vector<ReportRun>& runs, int width = 0);

}  // namespace hlat
