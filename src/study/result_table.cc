#include "study/result_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "base/file.h"
#include "base/format.h"
#include "base/json_text.h"
#include "base/svg_plot.h"
#include "base/table.h"

namespace hlat {
namespace {

double value_of(const StudyColumn& column, const SeedSpread& s) { return column.largest ? s.most : s.mean; }

std::string shown_figure(const StudyColumn& column, const SeedSpread& s) {
  using Shown = StudyColumn::Shown;
  const double value = value_of(column, s);
  const std::string seeds = s.count > 1 && std::isfinite(s.deviation) ? fmt::format(" ±{:.4f}", s.deviation) : "";
  switch (column.shown) {
    case Shown::loss: return fmt::format("{:.4f}{}", value, seeds);
    case Shown::number: return fmt::format("{:.3g}", value);
    case Shown::count: return format_count(value);
    case Shown::bytes: return format_bytes(static_cast<uint64_t>(value));
    case Shown::seconds: return value > 0 && value < 1 ? fmt::format("{:.2f} ms", 1000 * value) : format_duration(value);
    case Shown::share: return fmt::format("{:.2f}%", 100 * value);
  }
  return {};
}

std::string gap_words(const RowResult& row) {
  if (!row.gap) return "";
  std::string text = fmt::format("{:+.4f}", *row.gap);
  if (row.gap_interval) text += fmt::format(" [{:.4f}, {:.4f}]", row.gap_interval->low, row.gap_interval->high);
  if (row.gap_spreads) text += fmt::format(" {:.1f} sd", *row.gap_spreads);
  return text;
}

std::string diverged_words(const RowResult& row) {
  if (row.diverged.empty()) return row.ended > 0 ? "no" : "";
  std::vector<int64_t> steps = row.diverged;
  std::sort(steps.begin(), steps.end());
  return fmt::format("{} of {} at {}", steps.size(), row.ended, fmt::join(steps, ", "));
}

std::string alarm_words(const RowResult& row) {
  std::vector<std::string> parts;
  for (const auto& [rule, count] : row.alarms) parts.push_back(fmt::format("{} {}", rule, count));
  return parts.empty() && row.ended > 0 ? "none" : fmt::format("{}", fmt::join(parts, ", "));
}

struct TableColumn {
  std::string key, meaning;
  std::function<std::string(const RowResult&)> cell;
  std::function<std::optional<double>(const RowResult&)> value;  // asked where the cell is not empty
};

std::vector<TableColumn> table_columns(const StudyResults& results, const std::vector<std::string>& collect) {
  std::vector<TableColumn> all;
  for (const StudyColumn& c : study_columns()) {
    all.push_back({std::string(c.key), std::string(c.meaning),
                   [&c](const RowResult& row) {
                     const auto place = row.figures.find(std::string(c.key));
                     return place == row.figures.end() ? "" : shown_figure(c, place->second);
                   },
                   [&c](const RowResult& row) { return std::optional(value_of(c, row.figures.at(std::string(c.key)))); }});
    if (c.key == "final_loss") {
      all.push_back(
          {"gap",
           "final_loss minus the baseline's: the mean difference over pairs of runs with the same seed, of the seeds that both rows "
           "have, or where they share none the difference of the means; [low, high]: its 95 % confidence interval (Student's t) over "
           "two pairs or more; sd: effect size, the gap in units of the seeds' standard deviation (pooled over both rows), which is no "
           "significance",
           gap_words, [](const RowResult& row) { return row.gap; }});
      all.push_back({"diverged",
                     "runs whose loss or gradient norm became not finite, or whose loss rose by 0.5 and stayed there; and at which steps",
                     diverged_words, [](const RowResult& row) { return std::optional(static_cast<double>(row.diverged.size())); }});
    }
  }
  all.push_back({"alarms", "alarms of the runs, by rule", alarm_words, [](const RowResult& row) {
                   const auto add = [](double sum, const auto& rule) { return sum + static_cast<double>(rule.second); };
                   return std::optional(std::accumulate(row.alarms.begin(), row.alarms.end(), 0.0, add));
                 }});
  std::vector<TableColumn> out;
  for (const TableColumn& column : all) {
    const bool told = std::any_of(results.rows.begin(), results.rows.end(), [&](const RowResult& r) { return !column.cell(r).empty(); });
    const bool zero = (column.key == "comm_s" || column.key == "comm_wait_s") &&
                      std::all_of(results.rows.begin(), results.rows.end(), [&](const RowResult& r) {
                        return !r.figures.contains(column.key) || r.figures.at(column.key).most == 0;
                      });
    const bool wanted = collect.empty() ? told && !zero : std::find(collect.begin(), collect.end(), column.key) != collect.end();
    if (wanted) out.push_back(column);
  }
  return out;
}

using TableRows = std::vector<std::vector<std::string>>;

TableRows table_cells(const StudyResults& results, const std::vector<TableColumn>& columns) {
  TableRows rows = {{"point", "runs"}};
  for (const TableColumn& c : columns) rows[0].push_back(c.key);
  for (const RowResult& row : results.rows) {
    rows.push_back({row.name, row.ended == row.runs ? std::to_string(row.runs) : fmt::format("{} of {}", row.ended, row.runs)});
    for (const TableColumn& c : columns) rows.back().push_back(c.cell(row));
  }
  return rows;
}

// n of final_loss, of the runs that have one.
std::string final_counts(const StudyResults& results) {
  size_t least = 0, most = 0;
  for (const RunFigures& run : results.runs) {
    if (!run.standing.is_result() || !run.figures.contains("final_loss")) continue;
    const size_t count = final_count(run.curve.loss.size());
    least = least == 0 ? count : std::min(least, count), most = std::max(most, count);
  }
  if (most == 0) return "";
  return least == most ? fmt::format("; here n = {}", most) : fmt::format("; here n = {} to {}", least, most);
}

// Mean, and least and most, over the runs of a row, of each part of the run.
struct RowCurve {
  std::vector<double> tokens, mean, least, most;
};

constexpr size_t kParts = 200;

RowCurve row_curve(const StudyResults& results, const std::string& row, std::vector<double> RunCurve::*values) {
  int64_t last = 0;
  for (const RunFigures& run : results.runs)
    if (!run.curve.tokens.empty() && run.standing.changes.empty()) last = std::max(last, run.curve.tokens.back());
  std::vector<std::vector<double>> means(kParts);  // by part, of each run
  for (const RunFigures& run : results.runs) {
    if (run.row != row || !run.standing.changes.empty()) continue;  // of another config
    std::vector<double> sum(kParts), count(kParts);
    for (size_t i = 0; i < run.curve.tokens.size(); ++i) {
      // Whatever a record says: its tokens may be none, or more than those of the last step.
      const int64_t place = (run.curve.tokens[i] - 1) * static_cast<int64_t>(kParts) / std::max<int64_t>(1, last);
      const auto part = static_cast<size_t>(std::clamp<int64_t>(place, 0, kParts - 1));
      sum[part] += (run.curve.*values)[i], ++count[part];  // NaN where one is not finite
    }
    for (size_t p = 0; p < kParts; ++p)
      if (count[p] > 0) means[p].push_back(sum[p] / count[p]);
  }
  RowCurve out;
  for (size_t p = 0; p < kParts; ++p) {
    if (means[p].empty()) continue;
    const SeedSpread s = spread_of(means[p]);
    out.tokens.push_back((static_cast<double>(p) + 0.5) / kParts * static_cast<double>(last));
    out.mean.push_back(s.mean), out.least.push_back(s.least), out.most.push_back(s.most);
  }
  return out;
}

// The first after 2 % of its tokens, or the last that there is before.
double early_value(const RowCurve& c) {
  double value = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < c.mean.size(); ++i) {
    if (std::isfinite(c.mean[i])) value = c.mean[i];
    if (std::isfinite(c.mean[i]) && c.tokens[i] >= 0.02 * c.tokens.back()) break;
  }
  return value;
}

std::string curves_svg(const StudyResults& results, std::vector<double> RunCurve::*values, const std::string& what, bool log) {
  std::vector<RowCurve> curves;
  double cap = -std::numeric_limits<double>::infinity();
  for (const RowResult& row : results.rows) {
    curves.push_back(row_curve(results, row.name, values));
    cap = std::max(cap, early_value(curves.back()));
  }
  Plot plot{.title = results.study + ": " + what, .x = {.label = "tokens"}, .y = {.label = what, .log = log}, .series = {}};
  for (size_t r = 0; r < curves.size(); ++r) {
    const RowCurve& c = curves[r];
    PlotSeries series{.name = results.rows[r].name, .points = {}, .marks = false};
    for (size_t i = 0; i < c.mean.size(); ++i) {
      const bool drawn = log ? c.mean[i] > 0 && c.least[i] > 0 : c.mean[i] <= cap;
      series.points.push_back({c.tokens[i], drawn ? c.mean[i] : std::numeric_limits<double>::quiet_NaN()});
      series.band.push_back({c.least[i], log ? c.most[i] : std::min(c.most[i], cap)});
    }
    plot.series.push_back(std::move(series));
  }
  plot.width = 960;
  return svg_plot(plot);
}

// Under a name of this process until it is whole: another study of the folder may write it too.
void replace_file(const std::filesystem::path& file, const std::string& text) {
  const std::filesystem::path temporary = fmt::format("{}.{}.new", file.string(), getpid());
  std::error_code none;
  std::filesystem::remove(temporary, none);
  OutputFile(temporary, OutputFile::Mode::create_new).write(text);
  std::error_code error;
  std::filesystem::rename(temporary, file, error);
  if (error) fail_storage(error.value(), "cannot write " + file.string());
}

}  // namespace

std::vector<std::vector<std::string>> results_cells(const StudyResults& results, const std::vector<std::string>& collect) {
  return table_cells(results, table_columns(results, collect));
}

std::vector<std::vector<std::optional<double>>> results_values(const StudyResults& results, const std::vector<std::string>& collect) {
  const std::vector<TableColumn> columns = table_columns(results, collect);
  std::vector<std::vector<std::optional<double>>> rows;
  for (const RowResult& row : results.rows) {
    rows.push_back({std::nullopt, static_cast<double>(row.ended)});  // as table_cells begins a row
    for (const TableColumn& c : columns) rows.back().push_back(c.cell(row).empty() ? std::nullopt : c.value(row));
  }
  return rows;
}

std::string results_table(const StudyResults& results, const std::vector<std::string>& collect) {
  const std::vector<TableColumn> columns = table_columns(results, collect);
  return table_text(table_cells(results, columns), "l" + std::string(columns.size() + 1, 'r'));
}

std::string results_markdown(const StudyResults& results, const std::vector<std::string>& collect) {
  const std::vector<TableColumn> columns = table_columns(results, collect);
  std::string text = fmt::format("# {}\n\n", results.study);
  const TableRows rows = table_cells(results, columns);
  for (size_t r = 0; r < rows.size(); ++r) {
    text += fmt::format("| {} |\n", fmt::join(rows[r], " | "));
    if (r > 0) continue;
    text += "|---|";
    for (size_t c = 0; c <= columns.size(); ++c) text += "---:|";
    text += "\n";
  }
  text += "\n";
  if (!results.baseline.empty()) text += fmt::format("Compared with: {}.\n\n", results.baseline);
  for (const TableColumn& c : columns)
    text += fmt::format("- `{}`: {}{}\n", c.key, c.meaning, c.key == "final_loss" ? final_counts(results) : "");
  return text + "\n![loss](loss.svg)\n\n![gradient norm](grad_norm.svg)\n";
}

std::string loss_svg(const StudyResults& results) { return curves_svg(results, &RunCurve::loss, "loss", false); }
std::string grad_norm_svg(const StudyResults& results) { return curves_svg(results, &RunCurve::grad_norm, "gradient norm", true); }

void write_results(const std::filesystem::path& folder, const StudyResults& results, const std::vector<std::string>& collect) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail_storage(error.value(), "cannot create " + folder.string());
  replace_file(folder / "results.json", json_text(results_json(results), 2) + "\n");
  replace_file(folder / "results.md", results_markdown(results, collect));
  replace_file(folder / "loss.svg", loss_svg(results));
  replace_file(folder / "grad_norm.svg", grad_norm_svg(results));
}

}  // namespace hlat
