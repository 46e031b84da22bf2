#include "cli/study_report.h"

#include <exception>
#include <set>

#include "cli/version.h"
#include "record/events.h"
#include "report/page.h"
#include "report/report_data.h"

namespace hlat {

std::string write_study_report(const std::filesystem::path& folder, const std::vector<PlannedRun>& runs, const StudyResults& results) try {
  std::set<std::string> left_out;
  for (const RunFigures& run : results.runs)
    if (run.standing.standing == Standing::unreadable || run.standing.of_another_run()) left_out.insert(run.name);
  std::vector<std::filesystem::path> begun;
  std::error_code none;
  for (const PlannedRun& p : runs)
    if (!left_out.contains(p.run.name) && std::filesystem::exists(std::filesystem::path(p.config.run.dir) / "metrics.jsonl", none))
      begun.emplace_back(p.config.run.dir);
  if (begun.empty()) return "no run has a step yet";
  const std::vector<ReportRun> shown = read_report_runs(begun);
  write_page(folder / kStudyReport, page_html(report_data(shown, {.version = version(), .made_at = wall_time()})));
  return "";
} catch (const std::exception& e) {
  return e.what();
}

}  // namespace hlat
