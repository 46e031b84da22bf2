#include "train/alarm_watch.h"

#include <utility>

namespace hlat {

AlarmWatch::AlarmWatch(const Config& config, AlarmState& state, const LossPolicy& policy, bool leads) : policy_(policy) {
  if (leads) alarms_.emplace(config, state);
}

void AlarmWatch::told(const LossEvent& event) { documents_ = first_documents(event.documents); }

AlarmVote AlarmWatch::look(const StepMetrics& m, const LossVerdict& verdict) {
  const std::string documents = std::exchange(documents_, {});
  if (!alarms_) return {};
  std::string spike;
  if (verdict.cause == LossCause::spike)
    spike = documents.empty() ? verdict.words : fmt::format("{}; its batch has {}", verdict.words, documents);
  found_ = alarms_->add(m, spike);
  for (const Alarm& alarm : found_)
    if (policy_.alarmed(alarm, m.loss, m.grad_norm).ends()) return {.rule = static_cast<int64_t>(alarm.rule), .since = alarm.since};
  return {};
}

void AlarmWatch::answer(const StepMetrics& m, const AlarmVote& agreed, const std::function<void(const LossEvent&)>& tell) {
  std::optional<LossVerdict> end;
  for (const Alarm& alarm : std::exchange(found_, {})) {
    const LossVerdict verdict = policy_.alarmed(alarm, m.loss, m.grad_norm);
    tell({.step = m.step, .verdict = verdict, .documents = {}, .alarm = alarm});
    if (verdict.ends() && !end) end = verdict;
  }
  if (!agreed.ends()) return;
  const Alarm heard{.rule = static_cast<AlarmRule>(agreed.rule), .since = agreed.since, .evidence = "rank 0 has found it"};
  throw LossPolicy::failure(m.step, end ? *end : policy_.alarmed(heard, m.loss, m.grad_norm));
}

}  // namespace hlat
