// The rules: each looks at a step with what it remembers of those before, and finds something or nothing. A rule is a function and a row of
// a table; its thresholds stand beside it with their reasons. Rules see finite numbers of steps that were computed and not skipped;
// fp8_range sees skipped ones too, which may be skipped for what FP8 could not hold.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "alarm/alarm_state.h"
#include "config/alarm_rules.h"
#include "config/config.h"
#include "record/metrics.h"

namespace hlat {

// A step, as a rule sees it.
struct AlarmView {
  const Config& config;
  const StepMetrics& metrics;
  const std::string& spike;  // what the loss policy says of it, with its documents; empty: it is none
  bool settled = false;      // warm-up and what follows it are past

  const Monitors* monitors() const { return metrics.monitors ? &*metrics.monitors : nullptr; }
};

struct Finding {
  double value = 0, limit = 0;
  int64_t since = 0;     // the step with which it began, as far as that can be told
  std::string evidence;  // in words, with the numbers
};

// none: there was nothing to look at in this step.
struct Look {
  bool looked = false;
  std::optional<Finding> found = {};
};

struct AlarmRow {
  AlarmRule rule;
  Look (*look)(const AlarmView& view, AlarmMemory& memory);
  std::string_view advice;  // what to try
};
std::span<const AlarmRow> alarm_rows();  // by AlarmRule

// By what they look at.
Look look_at_grad_growth(const AlarmView& view, AlarmMemory& memory);  // trend_rules.cc
Look look_at_loss_rise(const AlarmView& view, AlarmMemory& memory);
Look look_at_spike(const AlarmView& view, AlarmMemory& memory);  // loss_rules.cc
Look look_at_leak(const AlarmView& view, AlarmMemory& memory);
Look look_at_probe_gap(const AlarmView& view, AlarmMemory& memory);
Look look_at_position_loss(const AlarmView& view, AlarmMemory& memory);
Look look_at_dead_layer(const AlarmView& view, AlarmMemory& memory);  // layer_rules.cc
Look look_at_exploding_layer(const AlarmView& view, AlarmMemory& memory);
Look look_at_attention_logits(const AlarmView& view, AlarmMemory& memory);
Look look_at_drift(const AlarmView& view, AlarmMemory& memory);  // weight_rules.cc
Look look_at_lost_updates(const AlarmView& view, AlarmMemory& memory);
Look look_at_moments(const AlarmView& view, AlarmMemory& memory);
Look look_at_repetition(const AlarmView& view, AlarmMemory& memory);    // data_rules.cc
Look look_at_wrong_update(const AlarmView& view, AlarmMemory& memory);  // update_rules.cc
Look look_at_fp8_range(const AlarmView& view, AlarmMemory& memory);     // fp8_rules.cc

}  // namespace hlat
