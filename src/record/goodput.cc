#include "record/goodput.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "base/format.h"
#include "base/median.h"

namespace hlat {

namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, kLostCauses> kLostNames = {{{"detection", "finding faults"},
                                                                                                {"teardown", "ending processes"},
                                                                                                {"start", "starting"},
                                                                                                {"load", "loading"},
                                                                                                {"repeated", "repeated steps"},
                                                                                                {"saves", "waiting for saves"},
                                                                                                {"slow", "slow steps"},
                                                                                                {"between", "between steps"},
                                                                                                {"check", "checks"},
                                                                                                {"pause", "pauses"},
                                                                                                {"wait", "waiting for hosts"},
                                                                                                {"down", "not running"},
                                                                                                {"unknown", "unknown"}}};
constexpr size_t kLatest = 64;  // steps whose median tells a slow one

bool starts_anew(const RunEvent& e) { return e.kind == "start" && e.reason == "started"; }

// The first event of the run that the folder has now.
size_t first_event(const std::vector<RunEvent>& events) {
  size_t first = 0, launch = 0;
  bool launched = false, started = false;  // a launcher is at work; a process of it has started
  for (size_t i = 0; i < events.size(); ++i) {
    const RunEvent& e = events[i];
    // One that takes over from a killed launcher goes on with its run, unless it is to start anew.
    if (e.kind == "launch" && (!launched || e.cause == kFreshLaunch)) launched = true, started = false, launch = i;
    if (e.kind == "stop" || e.kind == "finished") launched = false;
    if (e.kind != "start") continue;
    if (starts_anew(e) && !(launched && started)) first = launched ? launch : i;
    started = true;
  }
  return first;
}

// Goes through the events of a run and gives every moment to a cause: each mark ends the time of one.
class Walk {
 public:
  explicit Walk(const RunRecord& record) : record_(record) {
    auto& e = events_;
    e = record.events;
    std::stable_sort(e.begin(), e.end(), [](const RunEvent& a, const RunEvent& b) { return a.time < b.time; });
    e.erase(e.begin(), e.begin() + static_cast<ptrdiff_t>(first_event(e)));
  }

  RunAccount run() {
    if (events_.empty()) return {};
    cursor_ = out_.begin = events_.front().time - (events_.front().kind == "start" ? events_.front().seconds : 0);
    for (index_ = 0; index_ < events_.size(); ++index_) see(events_[index_]);
    finish();
    out_.until = cursor_;
    settle();
    return std::move(out_);
  }

 private:
  enum class State : uint8_t { none, starting, stepping, ended };  // of the attempt; ended: its processes are or will be

  void mark(double time, Lost cause) {
    if (time <= cursor_) return;
    out_.goodput.of(cause) += time - cursor_;
    cursor_ = time;
  }
  void mark_steps(double time) {
    if (time <= cursor_) return;
    stepping_ += time - cursor_;
    cursor_ = time;
  }
  void pass(double time) { excluded_ += std::max(0.0, time - cursor_), cursor_ = std::max(cursor_, time); }
  RunAttempt& attempt() { return out_.attempts.back(); }

  // When the last step before the present event was recorded: the next start says so, or the file as it is.
  double last_record(double otherwise) const {
    for (size_t i = index_; i < events_.size(); ++i)
      if (events_[i].kind == "start") return events_[i].progressed_at > 0 ? std::min(events_[i].progressed_at, otherwise) : otherwise;
    return record_.recorded_at > 0 ? std::min(record_.recorded_at, otherwise) : otherwise;
  }

  void see(const RunEvent& e) {
    if (pause_until_ > cursor_) mark(std::min(e.time, pause_until_), Lost::pause);
    const bool launcher = e.by == "launch";
    out_.launched = out_.launched || launcher;
    if (e.kind == "launch") return begin_launch(e);
    if (e.kind == "attempt") return begin_attempt(e);
    if (e.kind == "start") return begin_process(e);
    if (e.kind == "ready") return ready(e);
    if (e.kind == "save") saved_at_ = e.time;
    if (e.kind == "end") return end_process(e);
    if (e.kind == "fault" && launcher) return fault(e);
    if (e.kind == "teardown") return mark(e.time, Lost::teardown), close(e.time);
    if (e.kind == "check") return mark(e.time - e.seconds, Lost::unknown), mark(e.time, Lost::check);
    if (e.kind == "wait") return mark(e.time - e.seconds, Lost::unknown), mark(e.time, Lost::wait);
    if (e.kind == "restart") return mark(e.time, Lost::unknown), static_cast<void>(pause_until_ = e.time + e.pause_s);
    if (e.kind == "stop" || e.kind == "finished") return end_launch(e);
  }

  // Processes of the attempt before are gone without a word, or with one.
  void leave_behind(double until) {
    if (state_ == State::stepping) mark_steps(last_record(until));
    if (state_ == State::starting || state_ == State::stepping) close(cursor_);
    if (finished_)
      pass(until);
    else
      mark(until, Lost::down);
    finished_ = false;
  }

  void begin_launch(const RunEvent& e) {
    leave_behind(e.time);
    state_ = State::none;
  }

  void begin_attempt(const RunEvent& e) {
    if (state_ == State::starting || state_ == State::stepping) leave_behind(e.time);
    mark(e.time, out_.attempts.empty() || state_ == State::none ? Lost::start : Lost::unknown);
    out_.attempts.push_back(
        {.number = e.attempt, .begin = e.time, .ranks = e.ranks, .mesh = e.mesh, .hosts = e.hosts, .from = e.step, .reached = e.step});
    open(e.attempt);
  }

  void begin_process(const RunEvent& e) {
    const bool told = state_ == State::starting && launched_attempt_ && !process_;  // of the attempt that the launcher has told
    process_ = true;
    if (e.reached) reached_ = std::max(reached_, *e.reached);
    const size_t before = out_.attempts.size() - (told ? 1 : 0);
    if (e.reached && before > 0) has_reached(out_.attempts[before - 1], *e.reached);
    if (told) return;
    const double begin = e.time - e.seconds;
    leave_behind(begin);
    out_.attempts.push_back(
        {.number = static_cast<int64_t>(out_.attempts.size()) + 1, .begin = begin, .ranks = e.ranks, .hosts = {e.host}});
    open(0);
    process_ = true;
  }

  void open(int64_t launched_attempt) {
    state_ = State::starting;
    launched_attempt_ = launched_attempt > 0;
    process_ = false;
    saved_at_ = pause_until_ = 0;
  }

  void ready(const RunEvent& e) {
    if (state_ != State::starting) return;
    mark(e.time - e.load_s, Lost::start);
    mark(e.time, Lost::load);
    state_ = State::stepping;
    attempt().ready = e.time;
    attempt().from = attempt().reached = e.step;
    if (!std::exchange(was_ready_, true)) {  // what was there before is of another run
      reached_ = e.step;
      return;
    }
    // What an attempt cut off that failed before it was ready is not told by the next one.
    const int64_t again = std::max<int64_t>(e.repeated, reached_ - e.step);
    out_.goodput.repeated += again;
    repeated_s_ += e.repeated_s;
    unmeasured_ += again - e.repeated;
    reached_ = e.step;
  }

  void end_process(const RunEvent& e) {
    if (state_ != State::starting && state_ != State::stepping) return;
    const int code = e.exit_code.value_or(1);
    if (state_ == State::starting) {
      mark(e.time, Lost::start);
    } else {
      mark_steps(last_record(e.time));
      if (code == 0 || code == 6 || code > 128) {  // by itself or by a signal: what follows the last step is its save
        mark(std::min(saved_at_, e.time), Lost::saves);
        mark(e.time, Lost::between);
      } else {
        mark(e.time, Lost::detection);
      }
    }
    if (attempt().cause.empty()) attempt().reason = e.reason, attempt().exit_code = code, attempt().rank = e.rank, attempt().host = e.host;
    close(e.time);
    finished_ = code == 0;
  }

  void fault(const RunEvent& e) {
    if (out_.attempts.empty()) return;
    const double progress = e.progressed_at > 0 ? std::min(e.progressed_at, e.time) : e.time;
    if (state_ == State::starting) mark(progress, Lost::start);
    if (state_ == State::stepping) mark_steps(last_record(progress)), mark(progress, Lost::repeated);
    mark(e.time, Lost::detection);
    RunAttempt& a = attempt();
    a.cause = e.cause, a.reason = e.reason, a.rank = e.rank, a.host = e.host;
    if (e.exit_code) a.exit_code = e.exit_code;
    close(e.time);
    finished_ = false;
  }

  void close(double time) {
    if (out_.attempts.empty()) return;
    attempt().end = std::max(attempt().end, time);
    state_ = State::ended;
  }

  void end_launch(const RunEvent& e) {
    if (state_ == State::stepping) mark_steps(last_record(e.time));
    if (state_ == State::starting) mark(e.time, Lost::start);
    mark(e.time, Lost::teardown);
    close(e.time);
    finished_ = e.kind == "finished";
    state_ = State::none;
  }

  void finish() {
    if (record_.runs) {
      if (pause_until_ > cursor_) mark(std::min(record_.until, pause_until_), Lost::pause);
      if (state_ == State::stepping) return mark_steps(record_.until);
      if (!finished_) mark(record_.until, state_ == State::starting ? Lost::start : Lost::unknown);
      return;
    }
    if (state_ == State::stepping) mark_steps(last_record(std::max(cursor_, record_.recorded_at)));
    if (state_ == State::starting || state_ == State::stepping) close(cursor_);
  }

  // Splits the time of steps, and says what became of them.
  void settle() {
    Goodput& g = out_.goodput;
    count_steps();
    std::set<int64_t> first;
    for (const RunAttempt& a : out_.attempts)
      if (a.ready > 0) first.insert(a.from + 1);
    const StepSplit steps = split_steps(record_.steps, first);
    const double mean = g.kept + g.repeated > 0 ? stepping_ / static_cast<double>(g.kept + g.repeated) : 0;
    double rest = stepping_;
    const auto part_of = [](double& from, double wanted) {
      const double part = std::clamp(wanted, 0.0, from);
      from -= part;
      return part;
    };
    g.of(Lost::repeated) += part_of(rest, repeated_s_ + mean * static_cast<double>(unmeasured_));
    double kept = record_.steps.empty() ? std::exchange(rest, 0) : part_of(rest, steps.seconds);
    g.of(Lost::between) += rest;
    g.of(Lost::saves) += part_of(kept, steps.saves);
    g.of(Lost::start) += part_of(kept, steps.first);
    g.of(Lost::slow) += part_of(kept, steps.slow);
    g.useful_s = kept;
    g.step_s = steps.median;
    g.wall_s = cursor_ - out_.begin - excluded_;
    g.restarts = std::max<int64_t>(0, static_cast<int64_t>(out_.attempts.size()) - 1);
  }

  void count_steps() {
    if (!out_.attempts.empty() && !record_.steps.empty()) has_reached(attempt(), record_.steps.back().step);
    int64_t below = std::numeric_limits<int64_t>::max();  // what no later attempt did again
    for (auto a = out_.attempts.rbegin(); a != out_.attempts.rend(); ++a) {
      if (a->ready == 0) continue;
      a->kept = std::max<int64_t>(0, std::min(a->reached, below) - a->from);
      below = std::min(below, a->from);
      out_.goodput.kept += a->kept;
    }
  }
  static void has_reached(RunAttempt& a, int64_t step) {
    if (a.ready > 0) a.reached = std::max(a.from, step);
  }

  const RunRecord& record_;
  std::vector<RunEvent> events_;
  RunAccount out_;
  size_t index_ = 0;
  double cursor_ = 0, stepping_ = 0, excluded_ = 0;
  double pause_until_ = 0, saved_at_ = 0, repeated_s_ = 0;
  int64_t reached_ = 0, unmeasured_ = 0;
  State state_ = State::none;
  bool launched_attempt_ = false, process_ = false, finished_ = false, was_ready_ = false;
};

}  // namespace

std::string_view name_of(Lost cause) { return kLostNames[static_cast<size_t>(cause)].first; }
std::string_view words_of(Lost cause) { return kLostNames[static_cast<size_t>(cause)].second; }

RunAccount account(const RunRecord& record) { return Walk(record).run(); }

RunRecord read_run_record(const std::filesystem::path& folder, bool runs) {
  const std::filesystem::path metrics = folder / "metrics.jsonl";
  return {.events = read_events(folder).events,
          .steps = read_step_times(metrics),
          .recorded_at = written_at(metrics),
          .until = wall_time(),
          .runs = runs};
}

std::string goodput_words(const Goodput& g) {
  return fmt::format("goodput {:.1f}% of {}, {} restart{}", 100 * g.ratio(), format_duration(g.wall_s), g.restarts,
                     g.restarts == 1 ? "" : "s");
}

std::string lost_words(const Goodput& g) {
  std::vector<size_t> order;
  for (size_t i = 0; i < kLostCauses; ++i)
    if (g.lost[i] >= 1e-3 * g.wall_s && g.lost[i] > 0) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return g.lost[a] > g.lost[b]; });
  std::string text;
  for (const size_t i : order)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", words_of(static_cast<Lost>(i)), format_duration(g.lost[i]));
  return text.empty() ? "nothing" : text;
}

double LiveGoodput::step(double seconds, double save_wait_s, double now, bool computed) {
  if (computed) {
    if (latest_.size() < kLatest) latest_.push_back(seconds);
    latest_[next_++ % kLatest] = seconds;
  }
  const double wait = std::min(save_wait_s, seconds), usual = latest_.empty() ? seconds : upper_median(latest_);
  useful_ += seconds - wait > kSlowFactor * usual ? usual : seconds - wait;
  const double wall = wall_ + std::max(0.0, now - since_);
  return wall > 0 ? std::clamp(useful_ / wall, 0.0, 1.0) : 0;
}

}  // namespace hlat
