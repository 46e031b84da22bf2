#include "supervise/restart_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/exit_code.h"
#include "config/alarm_rules.h"

namespace hlat {

namespace {

constexpr std::array<std::pair<FailureCause, std::string_view>, 16> kFailureNames = {{{FailureCause::finished, "finished"},
                                                                                      {FailureCause::bad_input, "bad_input"},
                                                                                      {FailureCause::bug, "bug"},
                                                                                      {FailureCause::preempted, "preempted"},
                                                                                      {FailureCause::dead_rank, "dead_rank"},
                                                                                      {FailureCause::out_of_memory, "out_of_memory"},
                                                                                      {FailureCause::dead_host, "dead_host"},
                                                                                      {FailureCause::hang, "hang"},
                                                                                      {FailureCause::start_hang, "start_hang"},
                                                                                      {FailureCause::health, "health"},
                                                                                      {FailureCause::non_finite, "non_finite"},
                                                                                      {FailureCause::alarm, "alarm"},
                                                                                      {FailureCause::spike, "spike"},
                                                                                      {FailureCause::error, "error"},
                                                                                      {FailureCause::fault_exit, "fault_exit"},
                                                                                      {FailureCause::straggler, "straggler"}}};

constexpr int64_t kSkipWindow = 1000;  // steps that loss.skips counts over
constexpr int64_t kMostOutOfMemory = 2;
constexpr int64_t kAlarmSteps = 500;  // an alarm this soon after another of its rule is the same trouble

bool is_numerical(FailureCause kind) {
  return kind == FailureCause::non_finite || kind == FailureCause::spike || kind == FailureCause::alarm;
}

// The config's answer to numbers that are off, and its key.
std::pair<const std::string&, const char*> answer_in(const LossConfig& loss, FailureCause kind) {
  if (kind == FailureCause::alarm) return {loss.on_alarm, "loss.on_alarm"};
  if (kind == FailureCause::spike) return {loss.on_spike, "loss.on_spike"};
  return {loss.on_nonfinite, "loss.on_nonfinite"};
}

// Hosts that go one after the other are not one failure; all else is told by kind and step.
bool is_same(const Failure& a, const Failure& b) {
  return a.kind == b.kind && a.step == b.step && (a.kind != FailureCause::dead_host || a.host == b.host);
}

// How often the latest failure has come, itself included, since its step was last passed.
int64_t times_seen(const std::vector<Failure>& history) {
  const Failure& last = history.back();
  int64_t times = 0;
  for (auto f = history.rbegin(); f != history.rend() && f->step <= last.step; ++f) times += is_same(*f, last) ? 1 : 0;
  return times;
}

// Failures up to the latest, itself included, that gained no step beyond the best before them; 0: the latest did.
int64_t without_progress(const std::vector<Failure>& history) {
  int64_t best = history.front().step, count = 0;
  for (size_t i = 1; i < history.size(); ++i) {
    count = history[i].step > best ? 0 : count + 1;
    best = std::max(best, history[i].step);
  }
  return count;
}

// Kills for lack of memory in the latest stretch without progress.
int64_t out_of_memory_kills(const std::vector<Failure>& history) {
  const auto stretch = static_cast<size_t>(without_progress(history)) + 1;
  return std::count_if(history.end() - static_cast<ptrdiff_t>(stretch), history.end(),
                       [](const Failure& f) { return f.kind == FailureCause::out_of_memory; });
}

double pause_after(const std::vector<Failure>& history, double longest) {
  const int64_t count = without_progress(history);
  return count == 0 ? 0 : std::min(longest, std::ldexp(1.0, static_cast<int>(std::min<int64_t>(count - 1, 40))));
}

Decision stop(const Failure& failure, std::string words) { return {.exit_code = exit_code_of(failure), .words = std::move(words)}; }

// All failures like the latest, for whoever has to find out.
std::string evidence(const std::vector<Failure>& history) {
  std::string text;
  for (const Failure& f : history)
    if (is_same(f, history.back())) text += (text.empty() ? "" : "; ") + describe(f);
  return text;
}

std::optional<Decision> never_again(const Failure& last) {
  switch (last.kind) {
    case FailureCause::finished: return Decision{.words = "the run is finished"};
    case FailureCause::bad_input: return stop(last, "bad input, which a restart would find again: " + describe(last));
    case FailureCause::bug: return stop(last, "a bug in hlat, which a restart would meet again: " + describe(last));
    default: break;
  }
  if (last.asked) return stop(last, "the launcher was asked to end: " + describe(last));
  return {};
}

// Of an alarm, as the trainer's message begins: "at step 340 alarm leak: ...". Empty: it names none.
std::string_view rule_of(const Failure& f) {
  std::string_view first;
  size_t at = std::string::npos;
  for (const std::string_view name : kAlarmNames)
    if (const size_t found = f.words.find(fmt::format("alarm {}: ", name)); found < at) at = found, first = name;
  return first;
}

bool may_be_same_rule(const Failure& a, const Failure& b) {
  const std::string_view x = rule_of(a), y = rule_of(b);
  return x.empty() || y.empty() || x == y;
}

// An earlier alarm of the same rule began at most so many steps before the latest, or at any step after it.
bool alarm_came_back(const std::vector<Failure>& history) {
  const Failure& last = history.back();
  return std::any_of(history.begin(), history.end() - 1, [&](const Failure& f) {
    return f.kind == FailureCause::alarm && f.step > last.step - kAlarmSteps && may_be_same_rule(f, last);
  });
}

// How numbers are answered: nothing special, or with batches left out, or by a stop.
struct Answer {
  std::optional<StepRange> skip = {};
  std::string stop = {};  // why; empty: none
};

// The steps that may be the cause of numbers that are off.
StepRange suspects(const Failure& f) { return {f.step, f.kind == FailureCause::alarm ? std::max(f.step, f.until) : f.step}; }

bool is_in(const std::vector<int64_t>& sorted, int64_t step) { return std::binary_search(sorted.begin(), sorted.end(), step); }

// From the first one that is not skipped yet up to the last one that there is room for.
std::optional<StepRange> first_open(const StepRange& range, const std::vector<int64_t>& skips, int64_t room) {
  std::optional<StepRange> out;
  for (int64_t step = range.first; step <= range.last && room > 0; ++step) {
    if (is_in(skips, step)) continue;
    out = {out ? out->first : step, step};
    --room;
  }
  return out;
}

Answer answer_numbers(const std::vector<Failure>& history, const std::vector<int64_t>& skips, const LaunchConfig& launch,
                      const LossConfig& loss) {
  const Failure& last = history.back();
  const auto& [policy, key] = answer_in(loss, last.kind);
  if (policy == "stop") return {.stop = fmt::format("{} is stop: {}", key, describe(last))};
  if (policy == "continue") return {};  // no answer of its own: as any failure
  const StepRange range = suspects(last);
  if (!first_open(range, skips, 1))
    return {.stop = fmt::format("step {} fails without {} too: {}", last.step,
                                range.first == range.last ? "its batch" : batches_text(range), evidence(history))};
  if (last.kind == FailureCause::alarm && alarm_came_back(history))
    return {.stop =
                fmt::format("the alarm came back within {} steps, and going back again would not help: {}", kAlarmSteps, describe(last))};
  // A spike is in the data or the weights; a value that is not finite may be a fault of hardware, and is tried once more.
  const int64_t tries = last.kind != FailureCause::non_finite ? 1 : std::min<int64_t>(2, launch.same_failure);
  if (times_seen(history) < tries) return {};
  const auto recent =
      std::count_if(skips.begin(), skips.end(), [&](int64_t s) { return s > range.first - kSkipWindow && s <= range.last; });
  if (recent >= loss.skips)
    return {.stop = fmt::format("{} batches were skipped in the last {} steps (loss.skips is {}): {}", recent, kSkipWindow, loss.skips,
                                evidence(history))};
  return {.skip = first_open(range, skips, loss.skips - recent)};
}

std::optional<Decision> too_often(const std::vector<Failure>& history, const LaunchConfig& launch) {
  const Failure& last = history.back();
  if (last.kind == FailureCause::out_of_memory && out_of_memory_kills(history) >= std::min(kMostOutOfMemory, launch.same_failure))
    return stop(last, "killed for lack of memory again, with no step gained: " + evidence(history));
  if (const int64_t times = times_seen(history); times >= launch.same_failure)
    return stop(last, fmt::format("the same failure at {} {} times (launch.same_failure): {}",
                                  last.step > 0 ? fmt::format("step {}", last.step) : "the start", times, evidence(history)));
  return {};
}

// What a restart without the batches of `now` tells, and which others loss.skips had no room for. skips: those of before.
std::string skip_text(const StepRange& wanted, const StepRange& now, const std::vector<int64_t>& skips, const LossConfig& loss) {
  if (wanted.first == wanted.last) return "; its batch is skipped";
  const auto verb = [](const StepRange& r) { return r.first == r.last ? "is" : "are"; };
  std::string text = fmt::format("; {} {} skipped", batches_text(now), verb(now));
  if (const auto rest = first_open({now.last + 1, wanted.last}, skips, std::numeric_limits<int64_t>::max()))
    text += fmt::format(", {} {} not, as loss.skips = {} allows no more", batches_text(*rest), verb(*rest), loss.skips);
  return text;
}

}  // namespace

std::vector<int64_t> StepRange::steps() const {
  std::vector<int64_t> out;
  for (int64_t step = first; step <= last; ++step) out.push_back(step);
  return out;
}

std::string batches_text(const StepRange& range) {
  return range.first == range.last ? fmt::format("the batch of step {}", range.first)
                                   : fmt::format("the batches of steps {} to {}", range.first, range.last);
}

Decision decide(const std::vector<Failure>& history, const std::vector<int64_t>& skips, const LaunchConfig& launch,
                const LossConfig& loss) {
  HLAT_CHECK(!history.empty(), "nothing has failed");
  const Failure& last = history.back();
  if (const auto decision = never_again(last)) return *decision;
  const auto restarts = static_cast<int64_t>(history.size()) - 1;
  if (restarts >= launch.restarts)
    return stop(last, fmt::format("{} restarts are used up (launch.restarts): {}", launch.restarts, describe(last)));

  const Answer answer = is_numerical(last.kind) ? answer_numbers(history, skips, launch, loss) : Answer{};
  if (!answer.stop.empty()) return stop(last, answer.stop);
  if (!answer.skip)
    if (const auto decision = too_often(history, launch)) return *decision;

  Decision d{.restart = true, .words = describe(last), .pause_s = pause_after(history, static_cast<double>(launch.backoff_s))};
  if (last.kind == FailureCause::health) d.from = RestartFrom::verified_before, d.before = last.step;
  if (answer.skip) {
    d.from = RestartFrom::before, d.before = last.step;
    d.skip = answer.skip;
    d.words += skip_text(suspects(last), *answer.skip, skips, loss);
  }
  if (last.kind == FailureCause::dead_host || last.kind == FailureCause::straggler) d.evict = last.host;
  return d;
}

std::string_view name_of(FailureCause kind) {
  for (const auto& [known, name] : kFailureNames)
    if (known == kind) return name;
  return "error";
}

std::optional<FailureCause> failure_kind(std::string_view name) {
  for (const auto& [kind, known] : kFailureNames)
    if (known == name) return kind;
  return {};
}

FailureCause failure_of_exit(int exit_code) {
  switch (exit_code) {
    case kOk: return FailureCause::finished;
    case kUsage: return FailureCause::bad_input;
    case kBug: return FailureCause::bug;
    case kFault: return FailureCause::fault_exit;
    case kNumerical: return FailureCause::non_finite;
    case kPreemptedSaved: return FailureCause::preempted;
    default: return exit_code > kEndedBySignal ? FailureCause::dead_rank : FailureCause::error;
  }
}

int exit_code_of(const Failure& failure) {
  if (failure.kind == FailureCause::finished) return kOk;
  if (failure.exit_code != 0) return failure.exit_code;
  switch (failure.kind) {
    case FailureCause::bad_input: return kUsage;
    case FailureCause::bug: return kBug;
    case FailureCause::preempted: return kPreemptedSaved;
    case FailureCause::out_of_memory: return kEndedBySignal + SIGKILL;
    case FailureCause::health:
    case FailureCause::non_finite:
    case FailureCause::alarm:
    case FailureCause::spike: return kNumerical;
    case FailureCause::error: return kFailed;
    default: return kFault;  // a rank or host that is gone, a hang
  }
}

int exit_code_of_stop(int signal, int ranks, bool trained) {
  const int without_ranks = exit_code_of_signal(signal, !trained);
  return ranks == kOk || without_ranks == kPreemptedSaved ? without_ranks : ranks;
}

std::string describe(const Failure& f) {
  std::string name(name_of(f.kind));
  std::replace(name.begin(), name.end(), '_', ' ');
  std::string text = name + (f.step > 0 ? fmt::format(" at step {}", f.step) : " at the start");
  if (f.rank >= 0) text += fmt::format(", rank {}", f.rank);
  if (!f.host.empty()) text += f.rank >= 0 ? " on " + f.host : ", host " + f.host;
  if (f.exit_code != 0) text += fmt::format(", exit code {}", f.exit_code);
  return f.words.empty() ? text : text + ": " + f.words;
}

}  // namespace hlat
