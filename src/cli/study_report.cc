#include "cli/study_report.h"

#include <exception>
#include <map>
#include <set>

#include "cli/version.h"
#include "record/events.h"
#include "report/page.h"
#include "report/report_data.h"
#include "study/result_table.h"

namespace hlat {

std::string write_study_report(const std::filesystem::path& folder, const std::vector<PlannedRun>& runs, const StudyResults& results,
                               const std::vector<std::string>& collect) try {
  std::set<std::string> left_out;
  for (const RunFigures& run : results.runs)
    if (run.standing.standing == Standing::unreadable || run.standing.of_another_run()) left_out.insert(run.name);
  std::map<std::filesystem::path, std::string> rows;  // by folder
  std::vector<std::filesystem::path> begun;
  std::error_code none;
  for (const PlannedRun& p : runs) {
    if (left_out.contains(p.run.name) || !std::filesystem::exists(std::filesystem::path(p.config.run.dir) / "metrics.jsonl", none))
      continue;
    begun.emplace_back(p.config.run.dir);
    rows[begun.back()] = p.run.row;
  }
  if (begun.empty()) return "no run has a step yet";
  const std::vector<ReportRun> shown = read_report_runs(begun);
  ReportFacts facts{.version = version(),
                    .made_at = wall_time(),
                    .study = results.study,
                    .results = results_cells(results, collect),
                    .result_values = results_values(results, collect)};
  for (const ReportRun& run : shown) facts.groups.push_back(rows.at(run.overview.folder));
  write_page(folder / kStudyReport, page_html(report_data(shown, facts)));
  return "";
} catch (const std::exception& e) {
  return e.what();
}

}  // namespace hlat
