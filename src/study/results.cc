#include "study/results.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "record/run_curves.h"
#include "record/run_overview.h"

namespace hlat {
namespace {

using ResultJson = nlohmann::ordered_json;

void put_figure(RunFigures& run, const char* key, double value) {
  if (std::isfinite(value)) run.figures[key] = value;
}

// The last JSON object that hlat train --json has printed.
nlohmann::json read_summary(const std::filesystem::path& folder) {
  std::ifstream in(folder / "summary.json", std::ios::binary);
  return nlohmann::json::parse(in, nullptr, false);
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double unchanged_at_end(const RunCurve& c) {
  std::vector<double> late;
  for (size_t i = 0; i < c.unchanged.size(); ++i)
    if (4 * c.unchanged_step[i] >= 3 * c.step.back()) late.push_back(c.unchanged[i]);
  return mean_of(late);
}

void put_curve_figures(RunFigures& run) {
  const RunCurve& c = run.curve;
  if (c.step.empty()) return;
  if (run.standing.standing == Standing::finished && !run.metrics_end_early()) {
    put_figure(run, "final_loss", final_value(c.loss));
    put_figure(run, "val_loss", c.val_loss.value_or(std::numeric_limits<double>::quiet_NaN()));
  }
  // Of the steps before the first that is not finite.
  size_t finite = 0;
  while (finite < c.loss.size() && std::isfinite(c.loss[finite]) && std::isfinite(c.grad_norm[finite])) ++finite;
  put_figure(run, "noise", noise_around_curve(std::span(c.loss).first(finite)));
  const Growth growth = growth_of(std::span(c.grad_norm).first(finite));
  put_figure(run, "grad_slope", growth.slope);
  put_figure(run, "grad_ratio", growth.ratio);
  if (!c.drift.empty()) put_figure(run, "drift", *std::max_element(c.drift.begin(), c.drift.end()));
  put_figure(run, "unchanged", unchanged_at_end(c));
  put_figure(run, "tokens_per_s", usual_value(c.tokens_per_s));
  put_figure(run, "step_s", usual_value(c.step_s));
  put_figure(run, "comm_s", usual_value(c.comm_s));
  put_figure(run, "comm_wait_s", usual_value(c.comm_wait_s));
  if (const auto place = divergence(c.loss, c.grad_norm)) run.diverged = c.step[*place];
}

// A step that ends a run because it is not finite is told by an event and need not be in the metrics.
std::optional<int64_t> told_divergence(const RunOverview& seen) {
  std::optional<int64_t> step;
  for (const RunEvent& e : seen.events) {
    if (e.kind == "start") step.reset();  // another attempt
    if (e.kind == "non_finite") step = e.step;
  }
  return step;
}

// A value that is not finite ends a run before its step is recorded. The rise that leads to it is in the curve.
std::optional<int64_t> divergence_before(const RunCurve& curve, std::optional<int64_t> told) {
  if (!told || curve.step.empty() || curve.step.back() >= *told) return told;
  std::vector<double> losses = curve.loss, norms = curve.grad_norm;
  losses.push_back(std::numeric_limits<double>::quiet_NaN());
  norms.push_back(losses.back());
  const auto place = divergence(losses, norms);
  return place && *place < curve.step.size() ? curve.step[*place] : told;
}

// Of the last process. One that trained no step, since only what comes after the last was left, tells of no training.
void put_memory(RunFigures& run, const nlohmann::json& summary) {
  const auto number = [&](const char* key) {
    return summary.is_object() && summary.contains(key) && summary[key].is_number() ? summary[key].get<double>() : 0.0;
  };
  if (number("steps") < number("first_step")) return;
  for (const char* key : {"planned_bytes", "device_bytes", "resident_bytes"})
    if (number(key) > 0) put_figure(run, key, number(key));
}

// A folder that cannot be read keeps nobody from the results of the others.
RunFigures read_run_result(const PlannedRun& planned) try {
  const std::filesystem::path folder = planned.config.run.dir;
  RunFigures run{.name = planned.run.name, .row = planned.run.row, .standing = standing_of(planned), .steps = planned.config.train.steps};
  if (run.standing.standing == Standing::unreadable) return run;
  const RunOverview seen = read_run(folder);
  if (run.steps == 0) run.steps = seen.total;
  run.curve = read_curve(folder / "metrics.jsonl");
  put_curve_figures(run);
  run.alarms = seen.alarms();
  if (run.standing.standing == Standing::numbers && !run.diverged) run.diverged = divergence_before(run.curve, told_divergence(seen));
  put_memory(run, read_summary(folder));
  return run;
} catch (const FaultError& e) {
  return {.name = planned.run.name,
          .row = planned.run.row,
          .standing = {.standing = Standing::unreadable, .reason = e.what()},
          .steps = planned.config.train.steps};
}

// Losses of two runs at the same steps: what the batches do to both cancels.
double noise_against(const RunCurve& run, const RunCurve& base) {
  std::vector<double> difference;
  for (size_t i = 0, k = 0; i < run.step.size(); ++i) {
    while (k < base.step.size() && base.step[k] < run.step[i]) ++k;
    if (k == base.step.size() || base.step[k] != run.step[i]) continue;
    if (!std::isfinite(run.loss[i]) || !std::isfinite(base.loss[k])) break;
    difference.push_back(run.loss[i] - base.loss[k]);
  }
  return noise_around_curve(difference);
}

std::vector<size_t> seed_points(const Study& study, const StudyRun& run) {
  std::vector<size_t> points;
  for (size_t a = 0; a < study.axes.size(); ++a)
    if (study.axes[a].seeds) points.push_back(run.points[a]);
  return points;
}

// Each with the baseline's run of the same seed.
void put_noise_against_baseline(const Study& study, const std::vector<PlannedRun>& planned, std::vector<RunFigures>& runs) {
  std::map<std::pair<std::string, std::vector<size_t>>, const RunCurve*> results;  // by row and seed
  for (size_t i = 0; i < planned.size(); ++i)
    if (runs[i].standing.is_result()) results[{runs[i].row, seed_points(study, planned[i].run)}] = &runs[i].curve;
  for (size_t i = 0; i < planned.size(); ++i) {
    const std::string base = baseline_row(study, planned[i].run);
    if (base.empty() || base == runs[i].row) continue;
    if (const auto other = results.find({base, seed_points(study, planned[i].run)}); other != results.end())
      put_figure(runs[i], "noise_vs_base", noise_against(runs[i].curve, *other->second));
  }
}

RowResult& row_of(const Study& study, const StudyRun& run, std::vector<RowResult>& rows) {
  for (RowResult& row : rows)
    if (row.name == run.row) return row;
  const std::string base = baseline_row(study, run);
  RowResult& row = rows.emplace_back(RowResult{.name = run.row, .baseline = base == run.row ? "" : base});
  for (size_t a = 0; a < study.axes.size(); ++a)
    if (!study.axes[a].seeds) row.points[study.axes[a].name] = study.axes[a].points[run.points[a]].name;
  return row;
}

std::vector<RowResult> rows_of(const Study& study, const std::vector<PlannedRun>& planned, const std::vector<RunFigures>& runs) {
  std::vector<RowResult> rows;
  std::map<std::string, std::map<std::string, std::vector<double>>> values;  // by row and column
  for (size_t i = 0; i < planned.size(); ++i) {
    const RunFigures& run = runs[i];
    RowResult& row = row_of(study, planned[i].run, rows);
    ++row.runs;
    if (!run.standing.is_result()) continue;
    ++row.ended;
    if (run.diverged) row.diverged.push_back(*run.diverged);
    for (const auto& [rule, count] : run.alarms) row.alarms[rule] += count;
    for (const auto& [key, value] : run.figures) values[row.name][key].push_back(value);
    if (run.figures.contains("final_loss")) row.final_loss[seed_points(study, planned[i].run)] = run.figures.at("final_loss");
  }
  for (RowResult& row : rows)
    for (const auto& [key, list] : values[row.name]) row.figures[key] = spread_of(list);
  return rows;
}

// Of the seeds that both rows have, a pair each.
std::vector<double> paired_differences(const RowResult& row, const RowResult& base) {
  std::vector<double> out;
  for (const auto& [seed, loss] : row.final_loss)
    if (const auto other = base.final_loss.find(seed); other != base.final_loss.end()) out.push_back(loss - other->second);
  return out;
}

void compare_with_baseline(RowResult& row, const RowResult& base) {
  if (!base.figures.contains("final_loss") || !row.figures.contains("final_loss")) return;
  const SeedSpread &own = row.figures["final_loss"], &other = base.figures.at("final_loss");
  const std::vector<double> pairs = paired_differences(row, base);
  row.gap = pairs.empty() ? own.mean - other.mean : mean_of(pairs);
  row.gap_pairs = pairs.size();
  row.gap_interval = paired_interval(pairs);
  const auto squares = [](const SeedSpread& s) { return s.count > 1 ? static_cast<double>(s.count - 1) * s.deviation * s.deviation : 0.0; };
  const size_t freedom = own.count + other.count - 2;
  if (freedom == 0) return;
  const double pooled = std::sqrt((squares(own) + squares(other)) / static_cast<double>(freedom));
  if (pooled > 0) row.gap_spreads = *row.gap / pooled;
}

// With the baseline among `rows`, or where it is none of them, among `others`.
void compare_rows(std::vector<RowResult>& rows, const std::vector<RowResult>& others) {
  const auto named = [](const std::vector<RowResult>& list, const std::string& name) {
    return std::find_if(list.begin(), list.end(), [&](const RowResult& r) { return r.name == name; });
  };
  for (RowResult& row : rows) {
    if (const auto own = named(rows, row.baseline); own != rows.end())
      compare_with_baseline(row, *own);
    else if (const auto other = named(others, row.baseline); other != others.end())
      compare_with_baseline(row, *other);
  }
}

ResultJson number_or_null(double value) { return std::isfinite(value) ? ResultJson(value) : ResultJson(); }

ResultJson row_json(const RowResult& row) {
  ResultJson j{{"name", row.name}, {"points", row.points}, {"runs", row.runs}, {"ended", row.ended}, {"diverged", row.diverged}};
  j["baseline"] = row.baseline.empty() ? ResultJson() : ResultJson(row.baseline);
  j["gap"] = row.gap ? ResultJson(*row.gap) : ResultJson();
  j["gap_pairs"] = row.gap ? ResultJson(row.gap_pairs) : ResultJson();
  j["gap_spreads"] = row.gap_spreads ? ResultJson(*row.gap_spreads) : ResultJson();
  j["gap_low"] = row.gap_interval ? ResultJson(row.gap_interval->low) : ResultJson();
  j["gap_high"] = row.gap_interval ? ResultJson(row.gap_interval->high) : ResultJson();
  j["figures"] = ResultJson::object();
  for (const auto& [key, s] : row.figures)
    j["figures"][key] = {
        {"mean", s.mean}, {"deviation", number_or_null(s.deviation)}, {"least", s.least}, {"most", s.most}, {"runs", s.count}};
  j["alarms"] = row.alarms;
  return j;
}

ResultJson run_json(const RunFigures& run) {
  ResultJson j{{"name", run.name},          {"row", run.row},      {"state", name_of(run.standing.standing)},
               {"step", run.standing.step}, {"steps", run.steps},  {"reason", run.standing.reason},
               {"figures", run.figures},    {"alarms", run.alarms}};
  j["diverged"] = run.diverged ? ResultJson(*run.diverged) : ResultJson();
  j["contradicts"] = ResultJson::array();
  for (const KeyChange& change : run.standing.changes) j["contradicts"].push_back(change.str());
  return j;
}

}  // namespace

const std::vector<StudyColumn>& study_columns() {
  using Shown = StudyColumn::Shown;
  static const std::vector<StudyColumn> columns = {
      {"final_loss",
       "mean loss of the last n steps, n = 5 % of the steps, at least 20 and at most 100, never more than a fifth of the run; ± standard "
       "deviation over seeds",
       Shown::loss},
      {"val_loss", "loss on held-out documents, the last one; ± standard deviation over seeds", Shown::loss},
      {"noise", "standard deviation of the loss around a local linear fit, over the last half of the run", Shown::number},
      {"noise_vs_base", "the same, of the loss minus the loss of the baseline's run with the same seed at the same step", Shown::number},
      {"grad_slope", "slope of ln(gradient norm) over the last half, per 1000 steps; not given below 300 steps", Shown::number},
      {"grad_ratio", "gradient norm, median of the last tenth over that of the middle tenth", Shown::number},
      {"drift", "largest difference between ranks of weights that are replicated over them", Shown::number, true},
      {"unchanged",
       "share of weights that an update left unchanged, over the last quarter; expected to be large under stochastic rounding, where "
       "nothing is lost on average",
       Shown::share},
      {"tokens_per_s", "tokens per second, median over steps", Shown::count},
      {"step_s", "time of a step, median", Shown::seconds},
      {"comm_s", "time of communication in a step, of rank 0, median", Shown::seconds},
      {"comm_wait_s", "the part of comm_s that computation waited for (exposed communication), median", Shown::seconds},
      {"planned_bytes", "planned memory of rank 0", Shown::bytes},
      {"device_bytes", "device memory in use", Shown::bytes},
      {"resident_bytes", "resident host memory of rank 0", Shown::bytes},
  };
  return columns;
}

std::vector<std::string_view> collectable_columns() {
  std::vector<std::string_view> keys;
  for (const StudyColumn& c : study_columns()) keys.push_back(c.key);
  keys.insert(keys.end(), {"gap", "diverged", "alarms"});
  return keys;
}

SeedSpread spread_of(const std::vector<double>& values) {
  SeedSpread s{.count = values.size(), .mean = mean_of(values), .deviation = std::numeric_limits<double>::quiet_NaN()};
  if (values.empty()) return s;
  s.least = *std::min_element(values.begin(), values.end());
  s.most = *std::max_element(values.begin(), values.end());
  if (values.size() < 2) return s;
  double squares = 0;
  for (const double v : values) squares += (v - s.mean) * (v - s.mean);
  s.deviation = std::sqrt(squares / static_cast<double>(values.size() - 1));
  return s;
}

StudyResults read_results(const Study& study, const std::vector<PlannedRun>& planned) {
  StudyResults all{.study = study.name, .baseline = study.baseline};
  for (const PlannedRun& p : planned) all.runs.push_back(read_run_result(p));
  put_noise_against_baseline(study, planned, all.runs);
  all.rows = rows_of(study, planned, all.runs);
  compare_rows(all.rows, {});
  return all;
}

StudyResults results_of(const Study& study, const StudyResults& all, const std::vector<PlannedRun>& chosen) {
  StudyResults some{.study = all.study, .baseline = all.baseline};
  std::map<std::string_view, const RunFigures*> by_name;
  for (const RunFigures& run : all.runs) by_name[run.name] = &run;
  for (const PlannedRun& p : chosen) some.runs.push_back(*by_name.at(p.run.name));
  some.rows = rows_of(study, chosen, some.runs);
  compare_rows(some.rows, all.rows);
  return some;
}

nlohmann::ordered_json results_json(const StudyResults& results) {
  ResultJson j{{"study", results.study}};
  j["baseline"] = results.baseline.empty() ? ResultJson() : ResultJson(results.baseline);
  j["rows"] = ResultJson::array();
  for (const RowResult& row : results.rows) j["rows"].push_back(row_json(row));
  j["runs"] = ResultJson::array();
  for (const RunFigures& run : results.runs) j["runs"].push_back(run_json(run));
  return j;
}

}  // namespace hlat
