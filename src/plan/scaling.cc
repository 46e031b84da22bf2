#include "plan/scaling.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/format.h"
#include "base/svg_plot.h"
#include "base/table.h"

namespace hlat {

namespace {

std::string bytes_words(double bytes) { return format_bytes(static_cast<uint64_t>(std::max(0.0, bytes))); }

// What stands in a row instead of numbers.
std::string row_problem(const ScalingPoint& p) {
  if (!p.problem.empty()) return p.problem;
  return "does not fit: " + bytes_words(p.needed_bytes - p.available_bytes) + " short";
}

std::string step_words(double seconds) { return seconds < 9.9995 ? fmt::format("{:.3f}s", seconds) : fmt::format("{:.1f}s", seconds); }

std::vector<std::string> scaling_cells(const ScalingRow& row) {
  const ScalingPoint& p = row.point;
  const std::string memory = p.problem.empty() ? bytes_words(p.needed_bytes) : "-";
  std::vector<std::string> cells{fmt::format("{}", p.nodes), fmt::format("{}", p.ranks), p.layout.empty() ? "-" : p.layout};
  if (!row.cost) {
    cells.insert(cells.end(), {"-", "-", "-", "-", "-", memory, "-", "-", "-", row_problem(p)});
    return cells;
  }
  // A price that is not known is told once, below the table.
  const auto dollars = [](const CostFigure& f) { return f.has_value() ? dollar_words(f) : std::string("unknown"); };
  cells.insert(cells.end(),
               {step_words(p.step_s), format_count(p.tokens_per_s), format_count(row.tokens_per_rank_s),
                fmt::format("{:.1f}%", 100 * row.efficiency), p.mfu ? fmt::format("{:.1f}%", 100 * *p.mfu) : std::string("unknown"), memory,
                dollars(row.cost->cpt), dollars(row.cost->dollars), fmt::format("{:.1f}", row.cost->days), "fits"});
  return cells;
}

std::string price_words(const NodePrice& price) {
  if (!price.dollars_per_hour) return fmt::format("dollars unknown: give {}\n", price.key);
  std::string s = dollar_words(*price.dollars_per_hour) + " an hour for a node";
  for (const std::string* part : {&price.model, &price.region, &price.source, &price.date})
    if (!part->empty()) s += ", " + *part;
  return s + "\n";
}

nlohmann::ordered_json scaling_row_json(const ScalingRow& row) {
  const ScalingPoint& p = row.point;
  nlohmann::ordered_json j{{"nodes", p.nodes}, {"ranks", p.ranks}, {"layout", p.layout}, {"fits", p.fits()}};
  if (!p.problem.empty()) {
    j["problem"] = p.problem;
    return j;
  }
  j["needed_bytes"] = static_cast<uint64_t>(p.needed_bytes);
  j["available_bytes"] = static_cast<uint64_t>(p.available_bytes);
  if (!row.cost) {
    j["missing_bytes"] = static_cast<uint64_t>(p.needed_bytes - p.available_bytes);
    return j;
  }
  j["step_s"] = p.step_s;
  j["tokens_per_s"] = p.tokens_per_s;
  j["tokens_per_rank_s"] = row.tokens_per_rank_s;
  j["efficiency"] = row.efficiency;
  j["mfu"] = p.mfu ? nlohmann::ordered_json(*p.mfu) : nlohmann::ordered_json();
  j["dollars_per_4m_tokens"] = figure_json(row.cost->cpt);
  j["dollars"] = figure_json(row.cost->dollars);
  j["days"] = row.cost->days;
  j["joules_per_token"] = figure_json(row.cost->joules_per_token);
  j["kwh"] = figure_json(row.cost->kwh);
  j["tonnes_co2"] = figure_json(row.cost->tonnes);
  return j;
}

double plotted(const ScalingRow& row, ScalingAxis axis) {
  constexpr double nothing = NAN;
  if (!row.cost) return nothing;
  switch (axis) {
    case ScalingAxis::tokens_per_s: return row.point.tokens_per_s;
    case ScalingAxis::efficiency: return 100 * row.efficiency;
    case ScalingAxis::cpt: return row.cost->cpt.has_value() ? row.cost->cpt.value() : nothing;
  }
  return nothing;
}

// The line that a machine would have if each rank stayed as fast as on the first row that fits.
PlotSeries perfect_series(const Scaling& machine) {
  PlotSeries line{.name = machine.name + ", linear", .points = {}, .dashed = true};
  double per_rank = 0;
  for (const ScalingRow& row : machine.rows) {
    if (per_rank == 0 && row.cost) per_rank = row.tokens_per_rank_s;
    if (per_rank > 0) line.points.push_back({static_cast<double>(row.point.nodes), per_rank * static_cast<double>(row.point.ranks)});
  }
  return line;
}

std::string axis_words(ScalingAxis axis) {
  switch (axis) {
    case ScalingAxis::tokens_per_s: return "tokens per second";
    case ScalingAxis::efficiency: return "efficiency, %";
    case ScalingAxis::cpt: return "dollars per 4M tokens";
  }
  return {};
}

}  // namespace

Scaling scaling_of(std::string name, const std::vector<ScalingPoint>& points, const ScalingAsk& ask) {
  Scaling s{.name = std::move(name), .ask = ask, .rows = {}};
  double first = 0;
  for (const ScalingPoint& p : points) {
    HLAT_CHECK(p.nodes > 0 && p.ranks > 0, "{} nodes, {} ranks", p.nodes, p.ranks);
    ScalingRow row{.point = p};
    if (p.fits()) {
      HLAT_CHECK(p.tokens_per_s > 0, "{} nodes: {} tokens/s", p.nodes, p.tokens_per_s);
      row.cost = cost_of({.tokens_per_s = p.tokens_per_s, .nodes = p.nodes, .tokens = ask.tokens}, ask.price, ask.power);
      row.tokens_per_rank_s = p.tokens_per_s / static_cast<double>(p.ranks);
      if (first == 0) first = row.tokens_per_rank_s;
      row.efficiency = row.tokens_per_rank_s / first;
    }
    s.rows.push_back(std::move(row));
  }
  return s;
}

std::string scaling_text(const Scaling& scaling) {
  std::vector<std::vector<std::string>> rows{
      {"nodes", "ranks", "layout", "step", "tokens/s", "per rank", "efficiency", "MFU", "memory", "$/4M tokens", "dollars", "days", ""}};
  for (const ScalingRow& row : scaling.rows) rows.push_back(scaling_cells(row));
  std::string s = fmt::format("{}: {} tokens\n{}{}", scaling.name, format_count(scaling.ask.tokens), table_text(rows, "rrlrrrrrrrrrl"),
                              price_words(scaling.ask.price));
  // Energy of the last row that fits: the one with most nodes, as a rule.
  const auto last = std::find_if(scaling.rows.rbegin(), scaling.rows.rend(), [](const ScalingRow& r) { return r.cost.has_value(); });
  if (last != scaling.rows.rend()) s += fmt::format("on {} nodes: {}\n", last->point.nodes, energy_words(*last->cost));
  return s;
}

nlohmann::ordered_json scaling_json(const Scaling& scaling) {
  const NodePrice& price = scaling.ask.price;
  nlohmann::ordered_json j{{"name", scaling.name}, {"tokens", scaling.ask.tokens}};
  j["price"] = {{"model", price.model},
                {"region", price.region},
                {"dollars_per_hour",
                 figure_json(price.dollars_per_hour ? CostFigure::known(*price.dollars_per_hour) : CostFigure::unknown(price.key))},
                {"source", price.source},
                {"date", price.date}};
  j["rows"] = nlohmann::ordered_json::array();
  for (const ScalingRow& row : scaling.rows) j["rows"].push_back(scaling_row_json(row));
  return j;
}

std::string scaling_svg(const std::vector<Scaling>& machines, ScalingAxis axis, const std::string& title) {
  Plot plot{.title = title,
            .x = {.label = "nodes", .log = true},
            .y = {.label = axis_words(axis), .log = axis == ScalingAxis::tokens_per_s, .from_zero = axis != ScalingAxis::tokens_per_s},
            .series = {}};
  std::set<double> nodes;
  for (const Scaling& machine : machines) {
    PlotSeries line{.name = machine.name, .points = {}};
    for (const ScalingRow& row : machine.rows) {
      nodes.insert(static_cast<double>(row.point.nodes));
      line.points.push_back({static_cast<double>(row.point.nodes), plotted(row, axis)});
    }
    const bool any = std::any_of(line.points.begin(), line.points.end(), [](const PlotPoint& p) { return std::isfinite(p.y); });
    if (!any && axis == ScalingAxis::cpt) continue;
    plot.series.push_back(std::move(line));
    if (axis == ScalingAxis::tokens_per_s) plot.series.push_back(perfect_series(machine));
  }
  if (nodes.size() <= 12) plot.x.ticks.assign(nodes.begin(), nodes.end());
  return svg_plot(plot);
}

}  // namespace hlat
