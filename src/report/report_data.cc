#include "report/report_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "record/events.h"
#include "report/curve.h"
#include "report/kept_notes.h"
#include "report/runs_table.h"
#include "report/settings.h"
#include "report/source_shares.h"

namespace hlat {

namespace {

using DataJson = nlohmann::ordered_json;

constexpr size_t kMostEvents = 400, kMostNotes = 200, kMostDocuments = 32;  // of a run

// Six digits are more than a plot shows.
DataJson rounded(double value) {
  if (!std::isfinite(value)) return nullptr;
  return std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr);
}

DataJson rounded_list(const std::vector<double>& values) {
  DataJson out = DataJson::array();
  for (const double v : values) out.push_back(rounded(v));
  return out;
}

DataJson curve_data(const Curve& curve) { return {curve.step, rounded_list(curve.value)}; }

// Exact: rows are sorted by them.
DataJson values_data(const std::vector<std::vector<std::optional<double>>>& rows) {
  DataJson out = DataJson::array();
  for (const auto& row : rows) {
    DataJson values = DataJson::array();
    for (const std::optional<double>& v : row) values.push_back(v && std::isfinite(*v) ? DataJson(*v) : DataJson());
    out.push_back(std::move(values));
  }
  return out;
}

// Which tokens and which time belong to a step; a page finds what lies between by interpolation.
DataJson axis_data(const ReportRun& run, size_t most) {
  const RunCurves& s = run.steps;
  const size_t n = s.step.size(), stretches = std::min(n, most);
  DataJson step = DataJson::array(), tokens = DataJson::array(), time = DataJson::array();
  for (size_t k = 0; k < stretches; ++k) {
    const size_t i = stretches < 2 ? n - 1 : k * (n - 1) / (stretches - 1);
    step.push_back(s.step[i]), tokens.push_back(s.tokens[i]), time.push_back(std::round(1000 * run.clock[i]) / 1000);
  }
  return {{"step", std::move(step)}, {"tokens", std::move(tokens)}, {"time", std::move(time)}};
}

DataJson curves_data(const ReportRun& run, size_t most) {
  DataJson out = DataJson::object();
  for (const RunCurves* curves : {&run.steps, &run.evaluations})
    for (const auto& [key, curve] : curves->curves)
      if (curve.has_values() && !key.starts_with(kRowsOf)) out[key] = curve_data(thinned(curve, most));
  const Curve& loss = run.steps.curve("loss");
  if (loss.has_values()) out["smooth"] = curve_data(stretch_means(smoothed(loss, smoothing_steps(loss)), most));
  return out;
}

// Means of the parts of a step: waiting for data, waiting for messages, the rest.
DataJson split_data(const RunCurves& s, size_t most) {
  const Curve& seconds = s.curve("step_s");
  const Curve all = stretch_means(seconds, most);
  if (all.size() == 0) return nullptr;
  const auto waits = [&](const char* key) {  // of the same stretches; lines that do not tell it waited for nothing
    std::vector<double> values = stretch_means({.step = seconds.step, .value = s.curve(key).values_at(seconds.step)}, most).value;
    std::replace_if(
        values.begin(), values.end(), [](double v) { return !std::isfinite(v); }, 0.0);
    return values;
  };
  const std::vector<double> data = waits("data_wait_s"), comm = waits("comm_wait_s");
  std::vector<double> rest;
  for (size_t i = 0; i < all.size(); ++i) rest.push_back(std::max(0.0, all.value[i] - data[i] - comm[i]));
  return {{"step", all.step}, {"data", rounded_list(data)}, {"comm", rounded_list(comm)}, {"rest", rounded_list(rest)}};
}

// The mixture as it was read; null: no step tells it, as in a run of one source.
DataJson shares_data(const RunCurves& s, size_t most) {
  const SourceShares read = source_shares(s, most);
  if (read.step.empty()) return nullptr;
  DataJson shares = DataJson::object();
  for (const auto& [source, list] : read.shares) shares[source] = rounded_list(list);
  return {{"step", read.step}, {"shares", std::move(shares)}};
}

DataJson loss_notes_data(const ReportRun& run) {
  DataJson out = DataJson::array();
  for (const LossNote* note : kept_losses(run.notes.losses, kMostNotes)) {
    const LossNote& n = *note;
    DataJson documents = DataJson::array();
    for (const NotedDocument& d : n.documents)
      if (documents.size() < kMostDocuments) documents.push_back({d.source, d.file, d.document, d.byte, d.row, d.token, d.tokens});
    out.push_back({{"t", rounded(n.time - run.overview.run.begin)},
                   {"step", n.step},
                   {"kind", n.kind},
                   {"action", n.action},
                   {"reason", n.reason},
                   {"loss", rounded(n.loss)},
                   {"median", rounded(n.median)},
                   {"grad_norm", rounded(n.grad_norm)},
                   {"document_count", n.document_count},
                   {"documents", std::move(documents)}});
  }
  return out;
}

DataJson alarms_data(const ReportRun& run) {
  DataJson out = DataJson::array();
  for (const AlarmNote* a : kept_alarms(run.notes.alarms, kMostNotes))
    out.push_back({{"t", rounded(a->time - run.overview.run.begin)},
                   {"step", a->step},
                   {"rule", a->rule},
                   {"value", rounded(a->value)},
                   {"limit", rounded(a->limit)},
                   {"evidence", a->evidence},
                   {"advice", a->advice}});
  return out;
}

DataJson events_data(const std::vector<const RunEvent*>& events, double begin) {
  DataJson out = DataJson::array();
  for (const RunEvent* e : events) {
    const std::string words = words_of(*e);
    out.push_back({{"t", rounded(e->time - begin)}, {"step", e->step}, {"kind", e->kind}, {"words", words.substr(0, words.find('\n'))}});
  }
  return out;
}

DataJson time_data(const RunAccount& run) {
  DataJson attempts = DataJson::array(), lost = DataJson::array();
  const auto since = [&](double t) { return t > 0 ? rounded(t - run.begin) : DataJson(); };
  for (const RunAttempt& a : run.attempts)
    attempts.push_back({{"begin", since(a.begin)},
                        {"ready", since(a.ready)},
                        {"end", since(a.end > 0 ? a.end : run.until)},
                        {"from", a.from},
                        {"reached", a.reached},
                        {"kept", a.kept},
                        {"ranks", a.ranks},
                        {"words", a.cause.empty() ? a.reason : a.cause + ": " + a.reason}});
  for (size_t i = 0; i < kLostCauses; ++i)
    if (run.goodput.lost[i] > 0) lost.push_back({words_of(static_cast<Lost>(i)), rounded(run.goodput.lost[i])});
  return {{"wall_s", rounded(run.goodput.wall_s)},
          {"useful_s", rounded(run.goodput.useful_s)},
          {"lost", std::move(lost)},
          {"attempts", std::move(attempts)}};
}

DataJson run_data(const ReportRun& run, size_t points, size_t stretches) {
  DataJson lists = DataJson::object(), mixture = DataJson::array();
  for (const auto& [key, list] : run.steps.lists) lists[key] = list_data(list, stretches);
  const KeptEvents events = kept_events(run.overview, kMostEvents);
  const size_t losses = run.notes.losses.size(), alarms = run.notes.alarms.size();
  for (const MixturePart& part : run.mixture) mixture.push_back({{"from_step", part.from_step}, {"shares", part.shares}});
  return {{"row", row_json(row_of(run))},
          {"began", run.overview.run.begin > 0 ? DataJson(utc_text(run.overview.run.begin)) : DataJson()},
          {"axis", axis_data(run, points)},
          {"curves", curves_data(run, points)},
          {"split", split_data(run.steps, stretches)},
          {"lists", std::move(lists)},
          {"losses", loss_notes_data(run)},
          {"alarms", alarms_data(run)},
          {"events", events_data(events.events, run.overview.run.begin)},
          {"all", {{"losses", losses}, {"alarms", alarms}, {"events", events.all}, {"saves", events.all_saves}}},
          {"time", time_data(run.overview.run)},
          {"mixture", std::move(mixture)},
          {"shares", shares_data(run.steps, stretches)},
          {"ledger", run.ledger},
          {"plan", run.plan}};
}

}  // namespace

DataJson list_data(const ListCurve& list, size_t most) {
  const size_t n = list.step.size(), stretches = std::min(n, most);
  DataJson step = DataJson::array(), rows = DataJson::array();
  for (size_t s = 0; s < stretches; ++s) {
    const size_t begin = s * n / stretches, end = (s + 1) * n / stretches;
    std::vector<double> largest;
    for (size_t i = begin; i < end; ++i) {
      largest.resize(std::max(largest.size(), list.values[i].size()), -HUGE_VAL);
      for (size_t k = 0; k < list.values[i].size(); ++k)
        largest[k] = std::isfinite(list.values[i][k]) ? std::max(largest[k], list.values[i][k]) : NAN;  // NaN stays: max(NaN, x) is NaN
    }
    step.push_back(list.step[end - 1]);
    rows.push_back(rounded_list(largest));
  }
  return {{"step", std::move(step)}, {"rows", std::move(rows)}};
}

DataJson report_data(const std::vector<ReportRun>& runs, const ReportFacts& facts) {
  const size_t count = std::max<size_t>(1, runs.size());
  const size_t points = std::clamp<size_t>(12000 / count, 120, 1500), stretches = std::clamp<size_t>(1200 / count, 40, 240);
  DataJson list = DataJson::array();
  for (const ReportRun& run : runs) list.push_back(run_data(run, points, stretches));
  for (size_t i = 0; i < facts.groups.size(); ++i) list[i]["group"] = facts.groups[i];
  return {{"version", facts.version},        {"made_at", utc_text(facts.made_at)},
          {"refresh_s", facts.refresh_s},    {"study", facts.study},
          {"results", facts.results},        {"result_values", values_data(facts.result_values)},
          {"settings", settings_json(runs)}, {"runs", std::move(list)}};
}

}  // namespace hlat
