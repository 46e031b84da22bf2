#include "study/runner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <deque>
#include <fstream>
#include <limits>
#include <optional>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/format.h"
#include "record/events.h"
#include "record/folder_lease.h"
#include "record/metrics_tail.h"

namespace hlat {
namespace {

struct LiveRun {
  const PlannedRun* plan = nullptr;
  size_t ends_before = 0;  // in its folder, of earlier processes
  std::unique_ptr<RunProcess> process;
  double started = 0;
  std::optional<LastStep> seen = {};  // of what it has recorded, at that time
  double seen_at = -1;
  int64_t first_step = -1;  // that was seen of this process
  double first_at = 0;
  double looked_at = 0;               // for its end
  bool asked = false;                 // to end, while it was running
  double free_since = -1;             // its end is recorded and nobody holds its folder; below 0: not so
  std::optional<int> exit_code = {};  // that is recorded, where the process was ended after that
  std::filesystem::path folder() const { return plan->config.run.dir; }
};

size_t count_ends(const std::vector<RunEvent>& events) {
  return static_cast<size_t>(std::count_if(events.begin(), events.end(), [](const RunEvent& e) { return e.kind == "end"; }));
}

// The exit code of a process that has recorded its end; none: it has not.
std::optional<int> recorded_end(const LiveRun& live) {
  const std::vector<RunEvent> events = read_events(live.folder()).events;
  const auto last = std::find_if(events.rbegin(), events.rend(), [](const RunEvent& e) { return e.kind == "start" || e.kind == "end"; });
  if (last == events.rend() || last->kind != "end" || count_ends(events) <= live.ends_before) return {};
  return last->exit_code;
}

class StudyRunner {
 public:
  StudyRunner(const std::vector<PlannedRun>& runs, const StudyOptions& options, const StudyWorld& world)
      : runs_(runs), options_(options), world_(world), begin_(world.now()) {}

  StudyEnd run() {
    sort_runs();
    for (;;) {
      end_.signal = world_.asked();  // also of runs that are asked to end already, because their time is over
      if (!asked_ && wants_end()) ask_to_end();
      if (asked_ && end_.signal != 0 && world_.asked_twice())
        for (LiveRun& live : live_) live.process->end();
      while (!asked_ && !queue_.empty() && live_.size() < static_cast<size_t>(options_.at_once) && may_start())
        if (!start_next()) break;
      const bool held = asked_ || queue_.empty() || !may_start();
      if (live_.empty() && held) break;
      look_at_all();
      show();
      world_.pause();
    }
    end_.left += queue_.size();
    return end_;
  }

 private:
  static constexpr double kPatience = 120;  // seconds
  static constexpr double kShowLook = 0.5;  // between looks at what runs have recorded, which read the end of their files
  static constexpr double kHeldLook = 1;    // between looks at a folder that another process holds
  static constexpr double kHeldLapse = 10;  // without a look
  static constexpr double kEndLook = 1;     // between looks for an end
  static constexpr double kEndSettle = 2;   // from a recorded end to that of the process

  struct Waiting {
    const PlannedRun* plan;
    double held_since = -1;  // that another process was seen at work on it; below 0: none was
    double looked_at = -kHeldLook;
  };

  // What is there already counts; what contradicts the study is refused or started again.
  void sort_runs() {
    std::vector<std::string> problems;
    for (const PlannedRun& run : runs_) {
      const RunStanding found = standing_of(run);
      if (found.of_another_run() && !options_.fresh) {
        problems.push_back(fmt::format("{}: {}", run.run.name, found.contradiction()));
      } else if (found.is_result()) {
        count(found);
      } else {
        queue_.push_back({&run});
      }
    }
    if (problems.empty()) return;
    throw UsageError(
        fmt::format("{}\n--fresh sets such runs aside, in their folder previous_N, and starts them again; --out chooses another folder",
                    fmt::join(problems, "\n")));
  }

  bool wants_end() const { return end_.signal != 0 || (options_.stop_s > 0 && world_.now() - begin_ >= options_.stop_s); }

  // One that has ended by itself meanwhile is not asked.
  void ask_to_end() {
    asked_ = true;
    for (LiveRun& live : live_) {
      live.asked = live.process->running();
      if (live.asked) live.process->ask_to_end();
    }
    if (const auto count = std::count_if(live_.begin(), live_.end(), [](const LiveRun& live) { return live.asked; }); count > 0)
      world_.say(fmt::format("{}: {} run{} asked to end", end_.signal != 0 ? "a signal" : "--stop", count, count == 1 ? " is" : "s are"));
  }

  bool may_start() const { return options_.limit_s <= 0 || world_.now() - begin_ < options_.limit_s; }

  // The first of the queue that no other process works on. False: there is none now.
  bool start_next() {
    for (size_t i = queue_.size(); i > 0 && !queue_.empty(); --i) {
      const Waiting next = queue_.front();
      queue_.pop_front();
      if (world_.now() - next.looked_at < kHeldLook) {
        queue_.push_back(next);
        continue;
      }
      const RunStanding found = standing_of(*next.plan);
      if (is_free(next, found)) return start(*next.plan, found.starts_anew()), true;
    }
    return false;
  }

  // Whether a run is to be started now. Another process may work on it: that of a study that was killed ends soon after it; and another
  // study may have ended it, or have begun one of another config, since this one began. A file that is being cut cannot be read for a
  // moment.
  bool is_free(Waiting next, const RunStanding& found) {
    if (found.standing == Standing::running || FolderLease::is_held(next.plan->config.run.dir)) {
      // What passed while runs of this study were at work is no time that it was waited for.
      const bool waits = next.held_since >= 0 && world_.now() - next.looked_at < kHeldLapse;
      next.looked_at = world_.now();
      if (!waits) next.held_since = next.looked_at;
      if (next.looked_at - next.held_since < kPatience)
        queue_.push_back(next);
      else
        fail_run(next, fmt::format(": another process works on {}", next.plan->config.run.dir));
    } else if (found.standing == Standing::unreadable && !(found.config_unknown && options_.fresh)) {
      fail_run(next, " cannot be started: " + found.reason);
    } else if (found.is_result()) {
      count(found);
    } else if (found.of_another_run() && !options_.fresh) {
      ++end_.refused;
      fail_run(next, " cannot be started any more: " + found.contradiction());
    } else {
      return true;
    }
    return false;
  }

  void fail_run(const Waiting& run, const std::string& why) {
    ++end_.failed;
    world_.say(run.plan->run.name + why);
  }

  void count(const RunStanding& found) { ++(found.standing == Standing::finished ? end_.finished : end_.numbers); }

  // One that cannot be started has failed; the others know nothing of it.
  void start(const PlannedRun& run, bool fresh) try {
    const std::filesystem::path folder = run.config.run.dir;
    const int64_t step = last_recorded_step(folder / "metrics.jsonl").value_or(0);
    const size_t ends_before = count_ends(read_events(folder).events);
    live_.push_back({.plan = &run, .ends_before = ends_before, .process = world_.start(run, fresh), .started = world_.now()});
    const bool resumes = step > 0 && !fresh;
    world_.say(fmt::format("{} {}{}", run.run.name, resumes ? fmt::format("resumes, step {} was recorded", step) : "starts",
                           run.ranks > 1 ? fmt::format(" on {} ranks", run.ranks) : ""));
  } catch (const Error& e) {
    ++end_.failed;
    if (dynamic_cast<const UsageError*>(&e) != nullptr) ++end_.refused;
    world_.say(fmt::format("{} cannot be started: {}", run.run.name, e.what()));
  }

  void look_at_all() {
    for (auto live = live_.begin(); live != live_.end();) {
      if (!is_over(*live)) {
        ++live;
        continue;
      }
      finish(*live);
      live = live_.erase(live);
    }
  }

  // After a failed rank mpirun can linger up to 2 x checkpoint.grace_s. So a run is over when its folder has its end and nobody holds it
  // any more. After an error the other ranks have nothing left to do; after a signal one may still be ending a save.
  bool is_over(LiveRun& live) {
    if (!live.process->running()) return true;
    if (world_.now() - live.looked_at < kEndLook) return false;
    live.looked_at = world_.now();
    const std::optional<int> code = recorded_end(live);
    if (!code || FolderLease::is_held(live.folder())) {
      live.free_since = -1;
      return false;
    }
    if (live.free_since < 0) live.free_since = world_.now();
    if (world_.now() - live.free_since < kEndSettle) return false;
    const bool by_error = *code > 0 && *code < kPreemptedSaved;
    if (!by_error && !live.process->only_starter()) return false;
    live.process->end();
    live.exit_code = code;
    return true;
  }

  // A process that ended before it took the folder has left there what was in it: a run of another config, which is no result of this one,
  // or one that another process works on. One that was asked to end may have failed before, or over it.
  void finish(LiveRun& live) {
    const RunStanding found = standing_of(*live.plan);
    const std::string name = live.plan->run.name, took = format_duration(world_.now() - live.started);
    const int code = exit_code(live);
    if (found.is_result()) {
      count(found);
      world_.say(found.standing == Standing::finished ? fmt::format("{} finished{}, in {}", name, last_loss(live), took)
                                                      : fmt::format("{} ended after step {}: {}", name, found.step, found.reason));
    } else if (found.standing == Standing::unreadable && (!found.config_unknown || code == 0)) {
      ++end_.failed;
      world_.say(fmt::format("{} has ended, and what it recorded cannot be read: {}", name, found.reason));
    } else if (found.standing == Standing::running && code == kUsage) {
      world_.say(fmt::format("{} was started by another process meanwhile{}", name, asked_ ? "" : "; waiting for it"));
      queue_.push_back({live.plan, world_.now(), world_.now()});
    } else if (!asked_ || !ends_as_asked(live, code)) {
      ++end_.failed;
      if (code == kUsage) ++end_.refused;
      world_.say(fmt::format("{} failed with exit code {} after {}; the last lines of {}/{}:\n{}", name, code, took,
                             live.plan->config.run.dir, kRunOutput, last_lines(live.folder() / kRunOutput, 12)));
    } else {
      ++end_.left;
      world_.say(found.can_be_set_aside()
                     ? fmt::format("{} ended before its first step; its folder still has a run of another config", name)
                     : fmt::format("{} ended, step {} is recorded; the same command resumes it", name, found.step));
    }
  }

  // Whoever asks the study to end may ask its runs too. What was killed, and not by the study, has failed.
  static bool ends_as_asked(const LiveRun& live, int code) {
    constexpr std::array<int, 4> kAsking = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
    if (code == 0 || code == kPreemptedSaved || (live.asked && code == kEndedBySignal + SIGKILL)) return true;
    return std::find(kAsking.begin(), kAsking.end(), code - kEndedBySignal) != kAsking.end();
  }

  // When runs are asked to end, what one has recorded: its starter may have been killed after that.
  int exit_code(const LiveRun& live) const {
    if (live.exit_code) return *live.exit_code;
    const std::optional<int> recorded = asked_ ? recorded_end(live) : std::nullopt;
    return recorded ? *recorded : live.process->status();
  }

  // A file that cannot be read tells none.
  static std::string last_loss(const LiveRun& live) {
    const auto last = seen_of(live);
    return last && last->loss ? fmt::format(", loss {:.4f} at step {}", *last->loss, last->step) : "";
  }

  void show() {
    std::vector<RunShown> shown;
    for (LiveRun& live : live_) shown.push_back(shown_of(live));
    const size_t done = end_.finished + end_.numbers;
    world_.show(shown, fmt::format("{} of {} runs done{}{}, {}", done, runs_.size(),
                                   end_.numbers > 0 ? fmt::format(", {} of them with a numerical failure", end_.numbers) : "",
                                   end_.failed > 0 ? fmt::format(", {} failed", end_.failed) : "", format_duration(world_.now() - begin_)));
  }

  // A run that resumes cuts the file, and may do so while it is read.
  static std::optional<LastStep> seen_of(const LiveRun& live) try {
    return last_recorded(live.folder() / "metrics.jsonl");
  } catch (const FaultError&) {
    return {};
  }

  RunShown shown_of(LiveRun& live) const {
    RunShown s{.name = live.plan->run.name, .steps = live.plan->config.train.steps, .loss = std::numeric_limits<double>::quiet_NaN()};
    s.since_s = world_.now() - live.started;
    if (world_.now() - live.seen_at >= kShowLook) live.seen = seen_of(live), live.seen_at = world_.now();
    const auto& last = live.seen;
    if (!last) return s;
    s.step = last->step;
    if (last->loss) s.loss = *last->loss;
    s.tokens_per_s = last->tokens_per_s.value_or(0);
    if (live.first_step < 0 || last->step < live.first_step) live.first_step = last->step, live.first_at = world_.now();
    const auto done = static_cast<double>(last->step - live.first_step);
    if (done > 0 && s.steps > 0) s.left_s = (world_.now() - live.first_at) / done * static_cast<double>(s.steps - last->step);
    return s;
  }

  const std::vector<PlannedRun>& runs_;
  const StudyOptions& options_;
  const StudyWorld& world_;
  double begin_;
  bool asked_ = false;  // runs to end: nothing is started any more
  std::deque<Waiting> queue_;
  std::vector<LiveRun> live_;
  StudyEnd end_;
};

}  // namespace

std::string StudyEnd::words() const {
  std::string text = fmt::format("{} run{} finished", finished, finished == 1 ? "" : "s");
  if (numbers > 0) text += fmt::format(", {} with a numerical failure (exit code 5)", numbers);
  if (failed > 0) text += fmt::format(", {} failed", failed);
  if (left > 0) text += fmt::format(", {} left: the same command resumes the study", left);
  return text;
}

StudyEnd run_study(const std::vector<PlannedRun>& runs, const StudyOptions& options, const StudyWorld& world) {
  return StudyRunner(runs, options, world).run();
}

std::string last_lines(const std::filesystem::path& file, size_t lines) {
  constexpr std::streamoff kMost = 16384;
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in) return "  (there is no such file)";
  const std::streamoff size = in.tellg();
  in.seekg(std::max<std::streamoff>(0, size - kMost));
  std::deque<std::string> kept;
  for (std::string line; std::getline(in, line);) {
    if (const size_t carriage = line.rfind('\r'); carriage != std::string::npos) line.erase(0, carriage + 1);
    if (line.empty()) continue;
    kept.push_back("  " + line);
    if (kept.size() > lines) kept.pop_front();
  }
  return kept.empty() ? "  (it is empty)" : fmt::format("{}", fmt::join(kept, "\n"));
}

}  // namespace hlat
