#include "train/loss_policy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace hlat {

namespace {

constexpr int64_t kSkipWindow = 1000;  // steps
constexpr std::array<std::string_view, 5> kCauses = {"none", "spike", "non_finite", "asked", "alarm"};
constexpr std::array<std::string_view, 4> kActions = {"continue", "skip", "rollback", "stop"};

}  // namespace

std::string LossState::save() const {
  return json_text(nlohmann::json{{"losses", history.losses}, {"norms", history.norms}, {"skipped", skipped}, {"skip", to_skip}});
}

LossState LossState::parse(const std::string& text) try {
  const nlohmann::json json = nlohmann::json::parse(text);
  return {.history = {.losses = json.at("losses"), .norms = json.at("norms")}, .skipped = json.at("skipped"), .to_skip = json.at("skip")};
} catch (const nlohmann::json::exception& e) {
  fail("the history of the loss cannot be read: {}", e.what());
}

std::string_view name_of(LossCause cause) { return kCauses[static_cast<size_t>(cause)]; }
std::string_view name_of(LossAction action) { return kActions[static_cast<size_t>(action)]; }

bool LossPolicy::gates() const {
  return action_of(LossCause::non_finite) == LossAction::skip ||
         (config_.rule != "none" && action_of(LossCause::spike) == LossAction::skip);
}

LossAction LossPolicy::action_of(LossCause cause) const {
  const std::string& word = cause == LossCause::spike   ? config_.on_spike
                            : cause == LossCause::alarm ? config_.on_alarm
                                                        : config_.on_nonfinite;
  const auto at = std::find(kActions.begin(), kActions.end(), word);
  HLAT_CHECK(at != kActions.end(), "{} is no answer to a loss that is off", word);
  return static_cast<LossAction>(at - kActions.begin());
}

bool LossPolicy::is_asked(int64_t step) const { return std::binary_search(state_.to_skip.begin(), state_.to_skip.end(), step); }

LossVerdict LossPolicy::asked() const {
  const double none = std::numeric_limits<double>::quiet_NaN();
  LossVerdict verdict{.cause = LossCause::asked, .action = LossAction::skip, .loss = none, .grad_norm = none};
  verdict.found = watch_.judge(none, none);
  verdict.words = "the batch is passed over without being computed, as asked";
  return verdict;
}

int64_t LossPolicy::lately_skipped(int64_t step) const {
  return std::count_if(state_.skipped.begin(), state_.skipped.end(), [&](int64_t s) { return s > step - kSkipWindow; });
}

LossVerdict LossPolicy::judge(int64_t step, double loss, double grad_norm) const {
  LossVerdict v{.loss = loss, .grad_norm = grad_norm, .found = watch_.judge(loss, grad_norm)};
  if (!std::isfinite(loss) || !std::isfinite(grad_norm)) {
    v.cause = LossCause::non_finite;
    v.words = std::isfinite(loss) ? "a gradient is not finite" : fmt::format("the loss is {}", loss);
  } else if (v.found.spike) {
    v.cause = LossCause::spike;
    v.words = v.found.words;
  } else {
    return v;
  }
  v.action = action_of(v.cause);
  if (v.action != LossAction::skip && v.action != LossAction::rollback) return v;
  const int64_t skipped = lately_skipped(step);
  if (skipped < config_.skips) return v;
  v.action = LossAction::stop;
  v.no_skips_left = true;
  v.words += fmt::format("; {} batches of the last {} steps are skipped already, and loss.skips = {} allows no more", skipped, kSkipWindow,
                         config_.skips);
  return v;
}

LossVerdict LossPolicy::alarmed(const Alarm& alarm, double loss, double grad_norm) const {
  LossVerdict v{.cause = LossCause::alarm, .action = action_of(LossCause::alarm), .loss = loss, .grad_norm = grad_norm};
  v.since = alarm.since;
  v.words = fmt::format("alarm {}: {}", name_of(alarm.rule), alarm.evidence);
  return v;
}

void LossPolicy::add(int64_t step, const LossVerdict& verdict) {
  watch_.add(verdict.loss, verdict.grad_norm);
  if (verdict.action == LossAction::skip) state_.skipped.push_back(step);
  std::erase_if(state_.to_skip, [&](int64_t s) { return s <= step; });
}

FailedStep LossPolicy::failure(int64_t step, const LossVerdict& v) {
  const FailureKind kind = v.no_skips_left                    ? FailureKind::skips
                           : v.cause == LossCause::non_finite ? FailureKind::non_finite
                           : v.cause == LossCause::alarm      ? FailureKind::alarm
                                                              : FailureKind::spike;
  const std::string_view key = v.cause == LossCause::non_finite ? "nonfinite" : name_of(v.cause);
  const std::string asked = v.no_skips_left ? "" : fmt::format(" (loss.on_{} = {})", key, name_of(v.action));
  FailedStep failed(kind, v.since > 0 ? v.since : step,
                    fmt::format("at step {} {}; the gradient norm is {:.4f}{}", step, v.words, std::abs(v.grad_norm), asked));
  if (v.since > 0) failed.until = std::max(v.since, step);
  failed.loss = v.loss;
  failed.grad_norm = v.grad_norm;
  return failed;
}

void ask_to_skip(LossState& state, int64_t done, const std::vector<int64_t>& steps) {
  for (const int64_t step : steps)
    if (step > done) state.to_skip.push_back(step);
  std::sort(state.to_skip.begin(), state.to_skip.end());
  state.to_skip.erase(std::unique(state.to_skip.begin(), state.to_skip.end()), state.to_skip.end());
}

}  // namespace hlat
