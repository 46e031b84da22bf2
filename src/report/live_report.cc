#include "report/live_report.h"

#include <fmt/format.h>

#include <functional>

#include "base/json_text.h"
#include "record/events.h"
#include "report/page.h"
#include "report/report_data.h"
#include "report/report_run.h"

namespace hlat {
namespace fs = std::filesystem;

namespace {

// When a run's files were last written to, and how long they are: what they hold changes with it.
std::string files_of(const fs::path& folder) {
  std::string text;
  std::error_code none;
  for (const char* name : {"metrics.jsonl", "events.jsonl", "eval.jsonl", "plan.json", "ledger.json", "run.lock"})
    text += fmt::format("{}-{:.3f} ", fs::exists(folder / name, none) ? fs::file_size(folder / name, none) : 0, written_at(folder / name));
  return text;
}

}  // namespace

// A run whose process has died, or whose launcher is silent, ends without a change of its files; no other state does.
std::string LiveReport::state_of(const std::vector<fs::path>& folders) {
  std::string text;
  for (const fs::path& folder : folders) {
    std::string files = files_of(folder);
    Known& known = known_[folder.string()];
    if (known.files != files || known.state == RunState::running) known = {.files = files, .state = read_run(folder).state};
    text += fmt::format("{} {}{}\n", folder.string(), files, name_of(known.state));
  }
  return fmt::format("{:016x}", std::hash<std::string>{}(text));
}

void LiveReport::renew() {
  const std::vector<fs::path> folders = report_folders(runs_);
  const std::string state = state_of(folders);
  if (state == state_) return;
  data_ = report_data(read_report_runs(folders, true), {.version = version_, .made_at = wall_time(), .refresh_s = refresh_s_});
  data_["state"] = state;
  state_ = state;
}

Served LiveReport::answer(const std::string& path) {
  const std::string kData = "/data.json", kSince = kData + "?since=";
  const bool page = path == "/" || path == "/index.html";
  if (!page && path != kData && !path.starts_with(kSince))
    return {.status = 404, .type = "text/plain; charset=utf-8", .body = "not found\n"};
  renew();
  if (page) return {.body = page_html(data_)};
  if (path == kSince + state_) return {.status = 204};
  return {.type = "application/json", .body = json_text(data_)};
}

}  // namespace hlat
