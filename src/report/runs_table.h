// The table of a report: one row for each run.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/report_run.h"

namespace hlat {

struct RunRow {
  std::string name, folder, state;
  int64_t step = 0, steps = 0, tokens = 0;                                                 // steps: of the whole run; 0: not known
  double loss = 0, smooth_loss = 0, val_loss = 0, tokens_per_s = 0, mfu = 0, goodput = 0;  // NaN: not known
  int64_t restarts = 0, spikes = 0, alarms = 0;
};

// Speeds are medians over the steps; loss is that of the last step, beside the smooth curve's end.
RunRow row_of(const ReportRun& run);
nlohmann::ordered_json row_json(const RunRow& row);  // what is not known is null

// A row for each run, whose first cell is its name. width: columns of the terminal; 0: any. A table that is wider has the runs beside each
// other, in as many blocks as it takes.
using TableCells = std::vector<std::vector<std::string>>;
std::string table_within(const TableCells& cells, std::string_view alignment, int width);
std::string rows_text(const std::vector<RunRow>& rows, int width = 0);

}  // namespace hlat
