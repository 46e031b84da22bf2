// What becomes of a step whose loss is off (section `loss` of the config), or that the user wants skipped. Loss and gradient norm are equal
// on all ranks, so all come to the same decision without a message. The state is part of a checkpoint.
//
//   spike            loss.on_spike      continue: told; skip; rollback, stop: the run ends, and hlat launch goes on
//   not finite       loss.on_nonfinite  skip; rollback, stop: the run ends
//   alarm            loss.on_alarm      continue: told; rollback, stop: the run ends. Found by rank 0 (alarm/alarms.h), after the update
//   hlat train --skip                   skipped without being computed
//
// A skipped step leaves weights, moments and masters alone; step number, learning rate and data advance, and scales of FP8 learn what it
// met. Among the last 1000 steps a policy skips no more than loss.skips; those that were asked for count, and are never refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "alarm/alarms.h"
#include "base/failure_word.h"
#include "train/spike_watch.h"

namespace hlat {

struct LossState {
  SpikeHistory history;
  std::vector<int64_t> skipped;  // steps, in order
  std::vector<int64_t> to_skip;  // asked for, in order; those behind the latest step

  std::string save() const;                         // JSON
  static LossState parse(const std::string& json);  // Error: it is none
  bool operator==(const LossState&) const = default;
};

enum class LossCause : uint8_t { none, spike, non_finite, asked, alarm };
enum class LossAction : uint8_t { go_on, skip, rollback, stop };
std::string_view name_of(LossCause cause);
std::string_view name_of(LossAction action);  // as the config says it; go_on is "continue"

struct LossVerdict {
  LossCause cause = LossCause::none;
  LossAction action = LossAction::go_on;
  bool no_skips_left = false;  // why it stops
  double loss = 0, grad_norm = 0;
  SpikeFinding found = {};
  int64_t since = 0;       // alarm: the step with which it began; else 0
  std::string words = {};  // of any cause

  bool ends() const { return action == LossAction::rollback || action == LossAction::stop; }
};

class LossPolicy {
 public:
  // The state must outlive this.
  LossPolicy(const LossConfig& config, LossState& state) : config_(config), state_(state), watch_(config_, state.history) {}

  // Whether a decision is needed before the update.
  bool gates() const;
  bool is_asked(int64_t step) const;
  LossVerdict asked() const;  // of such a step
  LossVerdict judge(int64_t step, double loss, double grad_norm) const;
  LossVerdict alarmed(const Alarm& alarm, double loss, double grad_norm) const;
  // The step is over: enters the statistics, and the list of skipped ones.
  void add(int64_t step, const LossVerdict& verdict);

  // The error that a verdict ends the run with.
  static FailedStep failure(int64_t step, const LossVerdict& verdict);

 private:
  LossAction action_of(LossCause cause) const;
  int64_t lately_skipped(int64_t step) const;

  LossConfig config_;
  LossState& state_;
  SpikeWatch watch_;
};

// Steps that the command line asks for join those of the state.
void ask_to_skip(LossState& state, int64_t done, const std::vector<int64_t>& steps);

}  // namespace hlat
