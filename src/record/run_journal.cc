#include "record/run_journal.h"

#include <unistd.h>

#include "base/file.h"
#include "base/json_text.h"
#include "base/machine.h"
#include "record/events.h"
#include "record/folder_lease.h"

namespace hlat {

namespace {

constexpr std::string_view kAnew = "started", kGoesOn = "started again";

// Whether the last start has its end.
bool is_over(const std::filesystem::path& folder) {
  bool over = false;
  for (const RunEvent& event : read_events(folder).events) {
    if (event.kind == "start") over = false;
    if (event.kind == "end") over = true;
  }
  return over;
}

}  // namespace

void RunJournal::open(const std::filesystem::path& folder, uint64_t token, Log log, bool anew, const StartFacts& facts) {
  const std::lock_guard lock(mutex_);
  cut_to_whole_lines(folder / "events.jsonl");
  folder_ = folder;
  token_ = token;
  log_ = std::move(log);
  const std::string reason(anew ? kAnew : kGoesOn);
  const Event start{.kind = "start", .reason = reason, .start = facts};
  this->log(start);
  write(start);
}

void RunJournal::join(const std::filesystem::path& folder, uint64_t token) {
  const std::lock_guard lock(mutex_);
  folder_ = folder;
  token_ = token;
}

void RunJournal::ready(int64_t behind, const ReadyFacts& facts) {
  try_write({.kind = "ready", .step = behind, .reason = "the first step begins", .ready = facts, .routine = true});
}

void RunJournal::signal(int64_t step, const std::string& reason) { try_write({.kind = "signal", .step = step, .reason = reason}); }

void RunJournal::save(int64_t step, const std::string& reason, bool failed, int64_t saved) {
  try_write({.kind = failed ? "save_failed" : "save", .step = step, .reason = reason, .saved = saved, .routine = true});
}

void RunJournal::fault(int64_t step, const std::string& reason, const std::vector<int>& missing) {
  try_write({.kind = "fault", .step = step, .reason = reason, .missing = missing});
}

void RunJournal::note(const char* kind, int64_t step, const std::string& reason, const nlohmann::ordered_json& fields) {
  try_write({.kind = kind, .step = step, .reason = reason, .routine = true, .fields = &fields});
}

void RunJournal::end(int64_t step, const std::string& reason, int exit_code) {
  try_write({.kind = "end", .step = step, .reason = reason, .exit_code = exit_code});
}

// What ends a run has been told elsewhere too: a disk that is full must not hide it behind its own error.
void RunJournal::try_write(const Event& event) try {
  const std::lock_guard lock(mutex_);
  if (folder_.empty() || ended_) return;
  ended_ = event.exit_code.has_value();
  if (!is_own()) return;
  log(event);
  if (event.routine || !is_over(folder_)) write(event);
} catch (const std::exception&) {
}

// A lock that is gone or cannot be read is nobody else's: rank 0 then tells how its run ended.
bool RunJournal::is_own() const {
  const uint64_t found = lease_token(folder_);
  return found == token_ || (found == 0 && origin_.rank == 0);
}

void RunJournal::log(const Event& e) {
  const std::string who = origin_.rank == 0 ? "" : fmt::format("rank {} of {} on {}: ", origin_.rank, origin_.ranks, host_name());
  const Log log = log_ ? log_ : make_file_log(folder_ / "log.txt");
  const std::string code = e.exit_code ? fmt::format(", exit code {}", *e.exit_code) : "";
  log->info("{}{} at step {}{}: {}", who, e.kind, e.step, code, e.reason);  // info goes to the file alone
}

void RunJournal::write(const Event& e) {
  nlohmann::ordered_json j{
      {"time", utc_text(wall_time())}, {"kind", e.kind},         {"step", e.step},      {"reason", e.reason}, {"exit_code", nullptr},
      {"rank", origin_.rank},          {"ranks", origin_.ranks}, {"host", host_name()}, {"pid", getpid()},    {"config", origin_.config},
      {"version", origin_.version}};
  if (e.exit_code) j["exit_code"] = *e.exit_code;
  if (!e.missing.empty()) j["missing"] = e.missing;
  if (e.saved > 0) j["saved"] = e.saved;
  if (const auto& s = e.start) {
    j["seconds"] = s->seconds;
    if (s->reached) j["reached"] = *s->reached;
    if (s->progressed_at > 0) j["progressed_at"] = utc_text(s->progressed_at);
  }
  if (const auto& r = e.ready)
    j.update(
        {{"total", r->total}, {"seconds", r->seconds}, {"load_s", r->load_s}, {"repeated", r->repeated}, {"repeated_s", r->repeated_s}});
  if (e.fields != nullptr) j.update(*e.fields);
  OutputFile(folder_ / "events.jsonl", OutputFile::Mode::append).write(json_text(j) + "\n");
}

int64_t recorded_save(const std::filesystem::path& folder) {
  int64_t saved = 0;
  for (const RunEvent& event : read_events(folder).events) {
    if (event.kind == "start" && event.reason == kAnew) saved = 0;
    if (event.kind == "save" && event.saved) saved = *event.saved;
  }
  return saved;
}

bool recorded_finish(const std::filesystem::path& folder) {
  const std::vector<RunEvent> events = read_events(folder).events;
  const auto last = std::find_if(events.rbegin(), events.rend(), [](const RunEvent& e) { return e.kind == "start" || e.kind == "end"; });
  return last != events.rend() && last->kind == "end" && last->exit_code == 0;
}

}  // namespace hlat
