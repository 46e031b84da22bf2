#include "report/step_clock.h"

#include <algorithm>
#include <cmath>

namespace hlat {

namespace {

// How long each line's step took; lines without it, as of evaluations, took nothing.
std::vector<double> seconds_of(const RunCurves& curves) {
  std::vector<double> out = curves.curve("step_s").values_at(curves.step);
  for (double& s : out) s = std::isfinite(s) ? std::max(0.0, s) : 0;
  return out;
}

// Steps (from, to] of one attempt, from its ready on.
struct Stretch {
  double ready = 0;
  int64_t from = 0, to = INT64_MAX;
  double ends_by = 0;  // the next begins; 0: none does
};

std::vector<Stretch> stretches_of(const RunAccount& run) {
  std::vector<Stretch> out;
  for (const RunAttempt& a : run.attempts) {
    if (a.ready == 0) continue;
    while (!out.empty() && out.back().from >= a.from) out.pop_back();  // all of it was done again
    if (!out.empty()) out.back().to = a.from, out.back().ends_by = a.begin;
    out.push_back({.ready = a.ready, .from = a.from});
  }
  return out;
}

}  // namespace

std::vector<double> step_clock(const RunCurves& curves, const RunAccount& run, double recorded_at) {
  const std::vector<double> seconds = seconds_of(curves);
  std::vector<double> out(seconds.size(), 0);
  std::vector<Stretch> stretches = stretches_of(run);
  if (stretches.empty()) stretches.push_back({.ready = run.begin});
  if (stretches.front().from > 0) stretches.front().from = -1;  // what came with a checkpoint of elsewhere
  double latest = 0;
  for (const Stretch& s : stretches) {
    const auto begin = static_cast<size_t>(std::upper_bound(curves.step.begin(), curves.step.end(), s.from) - curves.step.begin());
    const auto end = static_cast<size_t>(std::upper_bound(curves.step.begin(), curves.step.end(), s.to) - curves.step.begin());
    double all = 0;
    for (size_t i = begin; i < end; ++i) all += seconds[i];
    double known = s.ends_by == 0 && recorded_at > 0 ? recorded_at : 0;
    if (known > 0 && !run.attempts.empty() && run.attempts.back().end > 0) known = std::min(known, run.attempts.back().end);
    const double stretch = known > s.ready && all > 0 ? std::max(1.0, (known - s.ready) / all) : 1;
    double done = 0;
    for (size_t i = begin; i < end; ++i) {
      done += seconds[i] * stretch;
      double at = s.ready - run.begin + done;
      if (s.ends_by > 0) at = std::min(at, s.ends_by - run.begin);
      out[i] = latest = std::max(latest, at);
    }
  }
  return out;
}

}  // namespace hlat
