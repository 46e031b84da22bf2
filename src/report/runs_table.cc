#include "report/runs_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/format.h"
#include "base/table.h"
#include "record/utilization.h"
#include "report/curve.h"

namespace hlat {

namespace {

using RowJson = nlohmann::ordered_json;

RowJson known(double value) { return std::isfinite(value) ? RowJson(value) : RowJson(); }

std::string shown(double value, const char* format) { return std::isfinite(value) ? fmt::format(fmt::runtime(format), value) : ""; }

bool fits(const std::string& table, int width) {
  size_t longest = 0;
  for (size_t begin = 0; begin < table.size();) {
    const size_t end = table.find('\n', begin);
    longest = std::max(longest, end - begin);
    begin = end + 1;
  }
  return width <= 0 || longest <= static_cast<size_t>(width);
}

// The runs [first, end) as columns.
std::string turned(const TableCells& cells, size_t first, size_t end) {
  TableCells out;
  for (size_t c = 0; c < cells[0].size(); ++c) {
    out.push_back({cells[0][c]});
    for (size_t r = first; r < end; ++r) out.back().push_back(cells[r][c]);
  }
  return table_text(out, "l" + std::string(end - first, 'r'));
}

// As many runs beside each other as there is room for, one at least.
std::string turned_blocks(const TableCells& cells, int width) {
  std::string text;
  for (size_t first = 1, end = 1; first < cells.size(); first = end) {
    for (end = first + 1; end < cells.size() && fits(turned(cells, first, end + 1), width);) ++end;
    text += (first > 1 ? "\n" : "") + turned(cells, first, end);
  }
  return text;
}

}  // namespace

std::string table_within(const TableCells& cells, std::string_view alignment, int width) {
  const std::string text = table_text(cells, alignment);
  return fits(text, width) ? text : turned_blocks(cells, width);
}

RunRow row_of(const ReportRun& run) {
  constexpr double kNotKnown = std::numeric_limits<double>::quiet_NaN();
  const Curve& loss = run.steps.curve("loss");
  const Goodput& goodput = run.overview.run.goodput;
  const double mfu = usual_value(run.steps.curve("mfu").value);
  return {.name = run.name,
          .folder = run.overview.folder.string(),
          .state = std::string(name_of(run.overview.state)),
          .step = run.steps.step.empty() ? 0 : run.steps.step.back(),
          .steps = run.overview.total,
          .tokens = run.steps.tokens.empty() ? 0 : run.steps.tokens.back(),
          .loss = last_finite(loss),
          .smooth_loss = last_finite(smoothed(loss, smoothing_steps(loss))),
          .val_loss = last_finite(run.steps.curve("val_loss")),
          .tokens_per_s = usual_value(run.steps.curve("tokens_per_s").value),
          .mfu = is_utilization(mfu) ? mfu : kNotKnown,
          .goodput = goodput.wall_s > 0 ? goodput.ratio() : kNotKnown,
          .restarts = goodput.restarts,
          .spikes = std::count_if(run.notes.losses.begin(), run.notes.losses.end(), [](const LossNote& n) { return n.is_of_loss(); }),
          .alarms = static_cast<int64_t>(run.notes.alarms.size())};
}

RowJson row_json(const RunRow& row) {
  return {{"name", row.name},
          {"folder", row.folder},
          {"state", row.state},
          {"step", row.step},
          {"steps", row.steps > 0 ? RowJson(row.steps) : RowJson()},
          {"tokens", row.tokens},
          {"loss", known(row.loss)},
          {"smooth_loss", known(row.smooth_loss)},
          {"val_loss", known(row.val_loss)},
          {"tokens_per_s", known(row.tokens_per_s)},
          {"mfu", known(row.mfu)},
          {"goodput", known(row.goodput)},
          {"restarts", row.restarts},
          {"spikes", row.spikes},
          {"alarms", row.alarms}};
}

std::string rows_text(const std::vector<RunRow>& rows, int width) {
  TableCells cells = {
      {"run", "state", "step", "tokens", "loss", "smooth", "val loss", "tokens/s", "MFU", "goodput", "restarts", "spikes", "alarms"}};
  const auto percent = [](double share) { return shown(100 * share, "{:.1f}%"); };
  for (const RunRow& r : rows)
    cells.push_back({r.name, r.state, r.steps > 0 ? fmt::format("{}/{}", r.step, r.steps) : std::to_string(r.step),
                     format_count(static_cast<double>(r.tokens)), shown(r.loss, "{:.4f}"), shown(r.smooth_loss, "{:.4f}"),
                     shown(r.val_loss, "{:.4f}"), std::isfinite(r.tokens_per_s) ? format_count(r.tokens_per_s) : "", percent(r.mfu),
                     percent(r.goodput), std::to_string(r.restarts), std::to_string(r.spikes), std::to_string(r.alarms)});
  return table_within(cells, "llrrrrrrrrrrr", width);
}

}  // namespace hlat
