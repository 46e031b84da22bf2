#include "supervise/hang_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/median.h"
#include "supervise/words.h"

namespace hlat {

namespace {

constexpr size_t kLearnedSteps = 128;
constexpr double kFloor = 8, kFloorMedians = 2.65;    // seconds, medians: what is silent for less never hangs
constexpr double kCeiling = 10, kCeilingMedians = 3;  // in which a hang is found
constexpr double kLooks = 1;                          // of that, what goes by between looks

constexpr uint64_t kSomeBytes = 1 << 20;  // less is no progress: locks are renewed, lines are logged

// Whether files are what the rank is about; in a step only data and saves are.
bool works_on_files(const RankView& v) {
  return v.phase != FlightPhase::training || v.action == FlightAction::save_wait || v.action == FlightAction::load;
}

// Of ends that make no progress: the lower, the more likely the cause.
enum class Suspicion : uint8_t { stopped, ended, silent, device };

Suspicion suspicion_of(const RankView& v) {
  if (v.stopped()) return Suspicion::stopped;
  if (v.ended) return Suspicion::ended;
  const bool streams = std::any_of(v.groups.begin(), v.groups.end(), [](const GroupView& g) { return g.on_stream; });
  return streams && v.action == FlightAction::read_back ? Suspicion::device : Suspicion::silent;
}

std::string cause_of(const RankView& v, double silent_s) {
  const std::string who = fmt::format("rank {} ({})", v.rank, v.host);
  const std::string since = fmt::format("for {:.1f} s", silent_s);
  if (v.stopped()) return fmt::format("{} is stopped, {}, without progress {}", who, doing_text(v), since);
  if (v.ended)
    return fmt::format("{} has ended with code {} ({}), and its process is still there after {:.1f} s", who, v.exit_code, v.reason,
                       silent_s);
  const bool device = suspicion_of(v) == Suspicion::device;
  return fmt::format("{} makes no progress {}, {}{}{}", who, since, doing_text(v), device ? "; it waits for its device" : "",
                     v.process == 'D' ? "; its process waits for a device or disk in the kernel" : "");
}

}  // namespace

HangWatch::HangWatch(const LaunchConfig& config, int ranks)
    : hang_s_(static_cast<double>(config.hang_s)),
      start_hang_s_(static_cast<double>(config.start_hang_s)),
      seen_(static_cast<size_t>(ranks)),
      longest_(kFlightPhases) {}

double HangWatch::limit_of(const RankView& v) const {
  const double start = start_hang_s_;
  if (v.ended || v.phase == FlightPhase::start) return start;
  if (hang_s_ > 0) return hang_s_;
  const double training = times_.empty() ? start
                                         : std::clamp(2 * median_ + 6 * spread_, std::max(kFloor, kFloorMedians * median_),
                                                      std::max(kCeiling, kCeilingMedians * median_) - kLooks);
  if (v.phase == FlightPhase::training) return v.action == FlightAction::save_wait ? std::max(start, training) : training;
  const double known = longest_[static_cast<size_t>(v.phase)];
  if (v.phase == FlightPhase::validation && known > 0) return std::max(training, 2 * known);
  return std::max({start, training, 2 * known});
}

void HangWatch::learn(const RankView& v, Seen& seen) {
  for (size_t i = 0; i < std::min(v.longest.size(), longest_.size()); ++i) longest_[i] = std::max(longest_[i], v.longest[i]);
  bool more = false;
  for (const StepTime& s : v.steps) {
    if (s.step <= seen.step || !std::isfinite(s.seconds)) continue;
    seen.step = s.step;
    if (s.seconds <= 0) continue;  // left out
    double& time = times_[s.step];
    time = std::max(time, s.seconds);
    more = true;
  }
  if (!more) return;
  while (times_.size() > kLearnedSteps) times_.erase(times_.begin());
  std::vector<double> all;
  for (const auto& [step, seconds] : times_) all.push_back(seconds);
  median_ = median(all);
  spread_ = median_deviation(all, median_, median);
}

// The shorter of what the rank's host and this watch have seen, without the time that this watch did not run.
double HangWatch::silent_s(const RankView& v, double now) const {
  const Seen& seen = seen_[static_cast<size_t>(v.rank)];
  return std::max(0.0, std::min(v.silent_s, now - seen.changed) - (delays_ - seen.delays));
}

std::optional<Hang> HangWatch::look(const RankViews& views, double now, double delay_s) {
  HLAT_CHECK(views.size() == seen_.size(), "views of {} ranks, not {}", views.size(), seen_.size());
  if (!begun_) begun_ = now;
  delays_ += std::clamp(delay_s, 0.0, now - looked_.value_or(now));
  looked_ = now;
  bool suspected = false;
  for (size_t r = 0; r < views.size(); ++r) {
    if (!views[r]) continue;
    const RankView& v = *views[r];
    HLAT_CHECK(v.rank == static_cast<int>(r), "the view of rank {} in the place of rank {}", v.rank, r);
    Seen& seen = seen_[r];
    if (!seen.ever || seen.pid != v.pid) seen = {.ever = true, .pid = v.pid, .progress = ~v.progress};
    const bool files = works_on_files(v) && v.io_bytes >= seen.io_bytes + kSomeBytes;
    if (files || seen.progress != v.progress)
      seen.progress = v.progress, seen.io_bytes = v.io_bytes, seen.changed = now, seen.delays = delays_;
    learn(v, seen);
  }
  for (const auto& v : views) suspected = suspected || (v && !v->gone() && silent_s(*v, now) > limit_of(*v));
  if (auto hang = not_started(views, now)) return hang;
  if (!suspected) return std::nullopt;
  const WaitGraph graph = wait_graph(views);
  if (auto hang = stuck_end(views, graph, now)) return hang;
  return stuck_cycle(views, graph, now);
}

std::optional<Hang> HangWatch::not_started(const RankViews& views, double now) const {
  const double limit = start_hang_s_, waited = now - *begun_ - delays_;
  if (waited <= limit) return std::nullopt;
  Hang hang{.silent_s = waited, .limit_s = limit};
  for (size_t r = 0; r < views.size(); ++r)
    if (!views[r] && !seen_[r].ever) hang.ranks.push_back(static_cast<int>(r));
  if (hang.ranks.empty()) return std::nullopt;
  hang.rank = hang.ranks.front();
  hang.cause = fmt::format("{} {} not started after {:.1f} s", ranks_text(hang.ranks), hang.ranks.size() == 1 ? "has" : "have", waited);
  return hang;
}

Hang HangWatch::hang_of(const RankView& v, double silent) const {
  return {.rank = v.rank, .ranks = {v.rank}, .host = v.host, .step = v.step, .phase = v.phase, .silent_s = silent, .limit_s = limit_of(v)};
}

std::optional<Hang> HangWatch::stuck_end(const RankViews& views, const WaitGraph& graph, double now) const {
  struct Stuck {
    const RankView* view;
    double silent;
    bool awaited;
  };
  std::vector<Stuck> all;
  for (const int end : graph.ends) {
    const auto& v = views[static_cast<size_t>(end)];
    if (!v || v->gone()) continue;
    const bool awaited = std::find(graph.culprits.begin(), graph.culprits.end(), end) != graph.culprits.end();
    if (const double silent = silent_s(*v, now); silent > limit_of(*v)) all.push_back({&*v, silent, awaited});
  }
  if (all.empty()) return std::nullopt;
  const auto order = [](const Stuck& s) { return std::tuple(suspicion_of(*s.view), !s.awaited); };
  std::stable_sort(all.begin(), all.end(),
                   [&](const Stuck& a, const Stuck& b) { return order(a) != order(b) ? order(a) < order(b) : a.silent > b.silent; });
  const auto alike = static_cast<size_t>(std::count_if(all.begin(), all.end(), [&](const Stuck& s) { return order(s) == order(all[0]); }));
  Hang hang = hang_of(*all[0].view, all[0].silent);
  hang.cause = cause_of(*all[0].view, all[0].silent);
  std::vector<int> waiting;
  hang.ranks.clear();
  for (size_t i = 0; i < alike; ++i) {
    hang.ranks.push_back(all[i].view->rank);
    const std::vector<int> more = graph.waiting_for(all[i].view->rank);
    waiting.insert(waiting.end(), more.begin(), more.end());
  }
  std::sort(hang.ranks.begin(), hang.ranks.end());
  if (alike > 1) hang.cause += fmt::format("; {} of {} are so: {}", alike, views.size(), ranks_text(hang.ranks));
  // Where all are silent and wait for nobody that is known, none of them is more to blame than another.
  if (alike == views.size() && alike > 1 && !all[0].view->stopped()) {
    hang.rank = -1;
    hang.host.clear();
    hang.cause = fmt::format("no rank makes progress; {}", cause_of(*all[0].view, all[0].silent));
  }
  std::vector<Wait> waits;
  for (const Wait& w : graph.waits)
    if (!w.in_background && std::find(waiting.begin(), waiting.end(), w.from) != waiting.end()) waits.push_back(w);
  hang.waiting = waiting_text(waits);
  return hang;
}

std::optional<Hang> HangWatch::stuck_cycle(const RankViews& views, const WaitGraph& graph, double now) const {
  for (const std::vector<int>& cycle : graph.cycles) {
    const RankView* latest = nullptr;  // of those that wait for each other, the last that got on
    bool stuck = true;
    for (const int r : cycle) {
      const RankView& v = *views[static_cast<size_t>(r)];
      stuck = stuck && silent_s(v, now) > limit_of(v);
      if (latest == nullptr || silent_s(v, now) < silent_s(*latest, now)) latest = &v;
    }
    if (!stuck) continue;
    Hang hang = hang_of(*latest, silent_s(*latest, now));
    hang.ranks = cycle;
    hang.rank = -1;
    hang.host.clear();
    hang.cause = fmt::format("{} wait for each other", ranks_text(cycle));
    if (const Wait* lost = graph.lost_in(cycle, views)) {
      const RankView &from = *views[static_cast<size_t>(lost->to)], &to = *views[static_cast<size_t>(lost->from)];
      hang.rank = from.rank;
      hang.host = from.host;
      hang.step = to.step;
      hang.cause = fmt::format("a message from rank {} ({}) to rank {} ({}) did not come: rank {} waits for it in {}", from.rank, from.host,
                               to.rank, to.host, to.rank, operation_name(*lost));
    }
    std::vector<Wait> waits;
    for (const Wait& w : graph.waits)
      if (!w.in_background) waits.push_back(w);
    hang.waiting = waiting_text(waits);
    return hang;
  }
  return std::nullopt;
}

std::vector<int> HangWatch::dead(const RankViews& views) const {
  std::vector<int> found;
  for (size_t r = 0; r < views.size(); ++r)
    if (seen_[r].ever && (!views[r] || views[r]->gone())) found.push_back(static_cast<int>(r));
  return found;
}

}  // namespace hlat
