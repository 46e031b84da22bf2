#include "supervise/rank_ends.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/exit_code.h"
#include "base/failure_word.h"

namespace hlat {

namespace {

// The lower, the nearer to the cause.
int distance(const RankView& v) {
  if (!v.ended) return 1;
  if (v.exit_code == kFault) return 2;
  if (v.exit_code == kPreemptedSaved || v.exit_code > kEndedBySignal) return 3;
  return v.exit_code == 0 ? 4 : 0;
}

FailureCause kind_of(const RankView& v) {
  if (!v.ended) return FailureCause::dead_rank;
  if (v.exit_code > kEndedBySignal) return FailureCause::dead_rank;
  if (v.exit_code == kNumerical)
    if (const auto word = parse_failure(v.reason)) {
      if (word->kind == FailureKind::health) return FailureCause::health;
      if (word->kind == FailureKind::alarm) return FailureCause::alarm;
      if (word->kind == FailureKind::spike) return FailureCause::spike;
      if (word->kind == FailureKind::skips) return FailureCause::bad_input;
      return FailureCause::non_finite;
    }
  return failure_of_exit(v.exit_code);
}

// The reason of a FailedStep without the word before it, which programs read.
std::string without_word(const std::string& reason) {
  const size_t end = reason.find("] ");
  return parse_failure(reason) && end != std::string::npos ? reason.substr(end + 2) : reason;
}

}  // namespace

void RankEnds::look(const std::vector<RankView>& views, double now) {
  for (const RankView& v : views) {
    if (!v.ended && !v.gone()) continue;
    const auto known = ends_.find(v.rank);
    if (known == ends_.end()) {
      ends_[v.rank] = {.view = v, .seen = now};
    } else if (!known->second.view.ended && v.ended) {
      known->second.view = v;
    }
    if (first_failure_ == 0 && (!v.ended || v.exit_code != 0)) first_failure_ = now;
  }
}

bool RankEnds::all_finished() const {
  return all_ended() &&
         std::all_of(ends_.begin(), ends_.end(), [](const auto& e) { return e.second.view.ended && e.second.view.exit_code == 0; });
}

Failure RankEnds::cause() const {
  const End* best = nullptr;
  const auto key = [](const End& e) { return std::make_tuple(distance(e.view), e.seen, e.view.rank); };
  for (const auto& [rank, end] : ends_)
    if (best == nullptr || key(end) < key(*best)) best = &end;
  if (best == nullptr) return {.kind = FailureCause::error, .words = "no rank has said why"};
  const RankView& v = best->view;
  const FailureCause kind = kind_of(v);
  const auto word = parse_failure(v.reason);
  return {.kind = kind,
          .step = kind == FailureCause::alarm && word ? word->step : v.step,  // it began before the step under way
          .until = kind == FailureCause::alarm && word ? word->until : 0,
          .rank = v.rank,
          .host = v.host,
          .exit_code = v.ended ? v.exit_code : 0,
          .words = v.ended ? without_word(v.reason) : fmt::format("process {} ended without a word: it was killed, or crashed", v.pid)};
}

}  // namespace hlat
