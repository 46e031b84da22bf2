#include "record/run_journal.h"

#include <fmt/chrono.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "base/json_text.h"
#include "base/machine.h"
#include "record/folder_lease.h"

namespace hlat {

namespace {

std::string utc_time() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now);
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now - seconds).count();
  return fmt::format("{:%FT%T}.{:03}Z", fmt::gmtime(static_cast<std::time_t>(seconds.count())), ms);
}

constexpr std::string_view kAnew = "started", kGoesOn = "started again";

template <class See>
void for_each_event(const std::filesystem::path& folder, const See& see) {
  std::ifstream in(folder / "events.jsonl", std::ios::binary);
  for (std::string line; std::getline(in, line);) {
    const auto event = nlohmann::json::parse(line, nullptr, false);
    if (event.is_object() && event.contains("kind")) see(event);
  }
}

// Whether the last start has its end.
bool is_over(const std::filesystem::path& folder) {
  bool over = false;
  for_each_event(folder, [&](const nlohmann::json& event) {
    if (event["kind"] == "start") over = false;
    if (event["kind"] == "end") over = true;
  });
  return over;
}

}  // namespace

void RunJournal::open(const std::filesystem::path& folder, uint64_t token, Log log, bool anew) {
  const std::lock_guard lock(mutex_);
  cut_to_whole_lines(folder / "events.jsonl");
  folder_ = folder;
  token_ = token;
  log_ = std::move(log);
  const std::string reason(anew ? kAnew : kGoesOn);
  const Event start{.kind = "start", .reason = reason};
  this->log(start);
  write(start);
}

void RunJournal::join(const std::filesystem::path& folder, uint64_t token) {
  const std::lock_guard lock(mutex_);
  folder_ = folder;
  token_ = token;
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
      {"time", utc_time()},        {"kind", e.kind},         {"step", e.step},      {"reason", e.reason}, {"exit_code", nullptr},
      {"rank", origin_.rank},      {"ranks", origin_.ranks}, {"host", host_name()}, {"pid", getpid()},    {"config", origin_.config},
      {"version", origin_.version}};
  if (e.exit_code) j["exit_code"] = *e.exit_code;
  if (!e.missing.empty()) j["missing"] = e.missing;
  if (e.saved > 0) j["saved"] = e.saved;
  if (e.fields != nullptr) j.update(*e.fields);
  OutputFile(folder_ / "events.jsonl", OutputFile::Mode::append).write(json_text(j) + "\n");
}

int64_t recorded_save(const std::filesystem::path& folder) {
  int64_t saved = 0;
  for_each_event(folder, [&](const nlohmann::json& event) {
    if (event["kind"] == "start" && event.value("reason", nlohmann::json()) == kAnew) saved = 0;
    if (event["kind"] == "save" && event.value("saved", nlohmann::json()).is_number_integer()) saved = event["saved"].get<int64_t>();
  });
  return saved;
}

}  // namespace hlat
