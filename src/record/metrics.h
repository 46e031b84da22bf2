// What is recorded of every optimizer step, and metrics.jsonl: one JSON object per line, on disk when write() returns.
// `scalars` is the only list of fields; JSON keys, TensorBoard tags and tests follow it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "record/monitors.h"

namespace hlat {

struct StepMetrics {
  int64_t step = 0;                                         // 1 is the first
  int64_t tokens = 0;                                       // trained on so far, this step included
  double loss = 0;                                          // nats per token
  double floor = std::numeric_limits<double>::quiet_NaN();  // exact entropy of the batch's targets; NaN: unknown, not written
  double grad_norm = 0;                                     // global, before clipping
  double param_norm = 0;
  double lr = 0;
  double step_s = 0;
  double tokens_per_s = 0;
  double mfu = 0;
  double hfu = 0;
  double data_wait_s = 0;
  double comm_s = 0;       // communication of rank 0
  double comm_wait_s = 0;  // the part of it that computation waited for
  bool skipped = false;    // the update was left out, and param_norm is not known
  bool computed = true;    // false: skipped unseen, without loss, floor, norms and rates
  // Of a save whose end was seen after this step; none: not written.
  std::optional<double> saved = {}, save_failed = {};  // the step that was saved, or was to be
  std::optional<double> save_wait_s = {};              // that updates waited for its copy
  std::optional<double> goodput = {};                  // so far, of a run that was restarted or has a launcher; none: not written
  // Of the held-out documents after this step; none: not looked at, not written.
  std::optional<double> val_loss = {}, val_ppl = {}, val_bpb = {};  // bpb: bits per byte of text
  std::vector<std::pair<std::string, double>> val_losses = {};      // by source, where there are several
  std::vector<std::pair<std::string, int64_t>> source_rows = {};    // of the whole batch, by source; empty: the run has one source
  std::optional<Monitors> monitors = {};                            // every monitor.every steps
};

// Calls visit(name, value) for every field that is recorded, step and tokens aside, in the order of the record.
template <class Visit>
void scalars(const StepMetrics& m, const Visit& visit) {
  if (m.computed) visit("loss", m.loss);
  if (m.computed && m.floor == m.floor) visit("floor", m.floor);
  if (m.computed) visit("grad_norm", m.grad_norm);
  if (!m.skipped) visit("param_norm", m.param_norm);
  visit("lr", m.lr);
  visit("step_s", m.step_s);
  if (m.computed) visit("tokens_per_s", m.tokens_per_s);
  if (m.computed) visit("mfu", m.mfu);
  if (m.computed) visit("hfu", m.hfu);
  visit("data_wait_s", m.data_wait_s);
  visit("comm_s", m.comm_s);
  visit("comm_wait_s", m.comm_wait_s);
  if (m.skipped) visit("skipped", 1.0);
  if (m.saved) visit("saved", *m.saved);
  if (m.save_failed) visit("save_failed", *m.save_failed);
  if (m.save_wait_s) visit("save_wait_s", *m.save_wait_s);
  if (m.goodput) visit("goodput", *m.goodput);
  if (m.val_loss) visit("val_loss", *m.val_loss);
  if (m.val_ppl) visit("val_ppl", *m.val_ppl);
  if (m.val_bpb) visit("val_bpb", *m.val_bpb);
  for (const auto& [source, loss] : m.val_losses) visit(("val_loss/" + source).c_str(), loss);
  for (const auto& [source, rows] : m.source_rows) visit(("rows/" + source).c_str(), static_cast<double>(rows));
}

// Calls number(name, value) and list(name, values) for all that is there, the losses by source aside.
template <class Number, class List>
void monitor_values(const Monitors& m, const Number& number, const List& list) {
  const auto fp8 = [&] {
    if (!m.fp8_saturated.empty()) list("fp8_saturated", m.fp8_saturated);
    if (!m.fp8_lost.empty()) list("fp8_lost", m.fp8_lost);
  };
  if (m.grad_norm.empty()) return fp8();  // of a skipped step
  list("grad_norm", m.grad_norm);
  list("weight_norm", m.weight_norm);
  list("update_ratio", m.update_ratio);
  list("unchanged", m.unchanged);
  list("max_activation", m.max_activation);
  list("max_lse", m.max_lse);
  if (!m.max_logit.empty()) list("max_logit", m.max_logit);
  number("moment1_max", m.moment1_max);
  number("moment2_min", m.moment2_min);
  number("moment2_max", m.moment2_max);
  if (m.update_error) number("update_error", *m.update_error);
  fp8();
  list("position_loss", m.position_loss);
  number("repeated_rows", m.repeated_rows);
  number("repetition", m.repetition);
  number("copy_baseline", m.copy_baseline);
  if (m.probe_loss) number("probe_loss", *m.probe_loss);
  if (m.leak) number("leak", *m.leak);
  if (m.drift) number("drift", *m.drift);
}

// The object "monitors": a value that is not finite is null in its list, and "not_finite" names it as "max_lse/3".
nlohmann::ordered_json monitors_json(const Monitors& m);

// object[name] = value. JSON has no number that is not finite: such a value is null there, and "not_finite" says which it is.
void put_number(nlohmann::ordered_json& object, const char* name, double value);

// Tasks that were evaluated after a step.
struct TaskMetrics {
  int64_t step = 0, tokens = 0;
  std::vector<std::pair<std::string, double>> values;  // "hellaswag/acc_norm"
};

template <class Visit>
void scalars(const TaskMetrics& m, const Visit& visit) {
  for (const auto& [metric, value] : m.values) visit(("eval/" + metric).c_str(), value);
}

// An alarm that was told after a step (docs/alarms.md).
struct ToldAlarm {
  int64_t step = 0;
  std::string rule;
  double value = 0;  // what the rule found
  std::string evidence;
};

class MetricsWriter {
 public:
  explicit MetricsWriter(const std::filesystem::path& file);  // appends
  void write(const StepMetrics& m);                           // FaultError when the line cannot be stored, as on a full disk
  void write(const TaskMetrics& m);

 private:
  OutputFile file_;
};

}  // namespace hlat
