// The data of a report's page, as one object: every run's curves with few enough points, its events, time, mixture, plan and row. Times
// are seconds since the run began. The more runs, the fewer points each gets, so that the page stays below a few megabytes.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "report/report_run.h"

namespace hlat {

struct ReportFacts {
  std::string version;   // of hlat
  double made_at = 0;    // seconds since 1970
  double refresh_s = 0;  // the page asks for new data so often; 0: never
  // Of a study: its name, its table with the heads first, of each of its rows the numbers that it is sorted by, and by run the row of it
  // that the run belongs to, which has one colour.
  std::string study = {};
  std::vector<std::vector<std::string>> results = {};
  std::vector<std::vector<std::optional<double>>> result_values = {};
  std::vector<std::string> groups = {};
};

nlohmann::ordered_json report_data(const std::vector<ReportRun>& runs, const ReportFacts& facts);

// A list of a monitor over at most `most` stretches of its steps: of each the largest values, null where one is not finite.
// {"step": [...], "rows": [[...], ...]}
nlohmann::ordered_json list_data(const ListCurve& list, size_t most);

}  // namespace hlat
