#include "supervise/launch_history.h"

#include <algorithm>

namespace hlat {

namespace {

Failure failure_of(const RunEvent& e) {
  return {.kind = failure_kind(e.cause).value_or(FailureCause::error),
          .step = e.step,
          .until = e.until,
          .rank = e.rank,
          .host = e.host,
          .exit_code = e.exit_code.value_or(0),
          .words = e.reason,
          .saved = e.saved.value_or(0)};
}

}  // namespace

LaunchHistory launch_history(const std::vector<RunEvent>& events, bool fresh) {
  LaunchHistory h;
  bool launched = false;  // a launcher is at work
  const auto forget = [&] { h = {.attempts = h.attempts}; };
  for (const RunEvent& e : events) {
    if (e.by != "launch") {
      if (e.kind == "start" && e.reason == "started" && !launched) forget();
      if (e.kind == "ready") h.pending = false, h.started = true;
      continue;
    }
    h.attempts = std::max(h.attempts, e.attempt);
    if (e.kind == "launch") launched = true;
    if (e.kind == "stop" || e.kind == "finished") launched = false;
    if (e.kind == "finished" || (e.kind == "launch" && e.cause == kFreshLaunch)) forget();
    if (e.kind == "stop" && e.cause == kStopBySignal) h.failures.clear(), h.evicted.clear(), h.restarts = 0, h.pending = false;
    if (e.kind == "fault") h.failures.push_back(failure_of(e)), h.skips_before = h.skips, h.pending = true;
    if (e.kind == "evict") h.evicted.insert(e.host);
    if (e.kind == "skip") h.skips = merged_steps(h.skips, StepRange{e.step, std::max(e.step, e.until)}.steps());
    if (e.kind == "restart") ++h.restarts;
  }
  if (fresh) forget();
  return h;
}

std::vector<int64_t> merged_steps(std::vector<int64_t> a, const std::vector<int64_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  std::sort(a.begin(), a.end());
  a.erase(std::unique(a.begin(), a.end()), a.end());
  return a;
}

}  // namespace hlat
