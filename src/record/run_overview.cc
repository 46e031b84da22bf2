#include "record/run_overview.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <set>
#include <utility>

#include "base/exit_code.h"
#include "base/machine.h"
#include "record/folder_lease.h"
#include "record/metrics_tail.h"

namespace hlat {
namespace fs = std::filesystem;

namespace {

constexpr double kSilence = 600;  // seconds after which a launcher of another host is taken for gone
constexpr int kDeepest = 6;       // folders below the given one

bool is_routine(const RunEvent& e) { return e.kind == "save" || e.kind == "ready"; }

bool launcher_lives(const RunEvent& launch, const fs::path& folder) {
  if (launch.host == host_name()) return kill(static_cast<pid_t>(launch.pid), 0) == 0 || errno == EPERM;
  return wall_time() - std::max(written_at(folder / "events.jsonl"), written_at(folder / "metrics.jsonl")) < kSilence;
}

RunState state_of_code(int exit_code) {
  if (exit_code == kOk) return RunState::finished;
  return exit_code == kPreemptedSaved || exit_code > kEndedBySignal ? RunState::stopped : RunState::failed;
}

RunState state_of(const std::vector<RunEvent>& events, const fs::path& folder) {
  const RunEvent *launch = nullptr, *over = nullptr;
  for (const RunEvent& e : events) {
    if (e.kind == "launch") launch = &e;
    if (e.kind == "launch" || e.kind == "attempt" || e.kind == "start") over = nullptr;
    if (e.kind == "end" || e.kind == "stop" || e.kind == "finished") over = &e;
    if (e.kind == "stop" || e.kind == "finished") launch = nullptr;
  }
  if (launch != nullptr && launcher_lives(*launch, folder)) return RunState::running;
  if (over != nullptr) return state_of_code(over->exit_code.value_or(1));
  return FolderLease::is_held(folder) ? RunState::running : RunState::failed;
}

void look_below(const fs::path& folder, int depth, std::vector<fs::path>& found) {
  if (is_run_folder(folder)) return found.push_back(folder);
  if (depth >= kDeepest) return;
  std::error_code unreadable;
  std::vector<fs::path> below;
  for (const auto& entry : fs::directory_iterator(folder, fs::directory_options::skip_permission_denied, unreadable)) {
    std::error_code gone;
    if (entry.is_directory(gone) && !entry.is_symlink(gone) && !entry.path().filename().string().starts_with('.'))
      below.push_back(entry.path());
  }
  std::sort(below.begin(), below.end());
  for (const fs::path& path : below) look_below(path, depth + 1, found);
}

}  // namespace

std::string_view name_of(RunState state) {
  constexpr std::array<std::string_view, 4> kNames = {"running", "finished", "stopped", "failed"};
  return kNames[static_cast<size_t>(state)];
}

bool is_run_folder(const fs::path& folder) {
  std::error_code none;
  return fs::is_regular_file(folder / "events.jsonl", none) || fs::is_regular_file(folder / "metrics.jsonl", none);
}

std::vector<fs::path> run_folders(const fs::path& folder) {
  std::vector<fs::path> found;
  look_below(folder, 0, found);
  return found;
}

RunOverview read_run(const fs::path& folder) {
  EventsRead read = read_events(folder);
  RunOverview out{.folder = folder, .state = state_of(read.events, folder)};
  RunRecord record = read_run_record(folder, out.state == RunState::running);
  out.run = account(record);
  out.recorded_at = record.recorded_at;
  if (const auto last = last_recorded(folder / "metrics.jsonl")) out.step = last->step, out.loss = last->loss;
  for (const RunEvent& e : read.events)
    if (e.total > 0) out.total = e.total;
  out.events = std::move(read.events);
  out.problems = std::move(read.problems);
  return out;
}

double RunOverview::changed_at() const {
  double latest = recorded_at;
  for (const RunEvent& e : events) latest = std::max(latest, e.time);
  return latest;
}

std::map<std::string, int64_t> RunOverview::alarms() const {
  std::map<std::string, int64_t> count;
  std::set<std::pair<std::string, int64_t>> told;
  for (const RunEvent& e : events)
    if (e.kind == "alarm" && e.time >= run.begin && told.emplace(e.rule, e.step).second) ++count[e.rule];
  return count;
}

std::string RunOverview::last_event() const {
  const auto last = std::find_if(events.rbegin(), events.rend(), [](const RunEvent& e) { return !is_routine(e); });
  return last == events.rend() ? "" : words_of(*last);
}

std::string words_of(const RunEvent& e) {
  const std::string& which = e.rule.empty() ? e.cause : e.rule;
  std::string text = e.kind + (which.empty() ? "" : ": " + which);
  const bool begins = e.kind == "attempt" || e.kind == "ready" || e.kind == "restart";
  if (e.step > 0) text += fmt::format(" {} step {}", begins ? "after" : "at", e.step);
  if (e.by == "launch" && e.rank >= 0 && (e.kind == "fault" || e.kind == "straggler"))
    text += fmt::format(", rank {} on {}", e.rank, e.host);
  if (e.exit_code && e.kind != "check") text += fmt::format(", exit code {}", *e.exit_code);
  if (e.kind == "check") text += e.exit_code == 0 ? " passed" : " failed";
  return e.reason.empty() ? text : text + ": " + e.reason;
}

}  // namespace hlat
