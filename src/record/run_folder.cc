#include "record/run_folder.h"

#include <chrono>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace hlat {
namespace fs = std::filesystem;
namespace {

fs::path make_folder(const fs::path& dir) {
  std::error_code error;
  if (fs::exists(dir, error) && !fs::is_directory(dir, error)) fail<UsageError>("run.dir {} is a file, not a folder", dir.string());
  fs::create_directories(dir, error);
  if (error) fail_storage(error.value(), "cannot create the run folder " + dir.string());
  return dir;
}

bool belongs_to_a_run(const std::string& name) {
  return name == "config.yaml" || name == "metrics.jsonl" || name == "log.txt" || name.starts_with("events.out.");
}

// Moves files of an earlier run out of the way; returns where to, or an empty path.
fs::path set_aside(const fs::path& dir) try {
  std::vector<fs::path> old;
  for (const auto& entry : fs::directory_iterator(dir))
    if (belongs_to_a_run(entry.path().filename())) old.push_back(entry.path());
  if (old.empty()) return {};
  int k = 1;
  while (fs::exists(dir / fmt::format("previous_{}", k))) ++k;
  const fs::path to = dir / fmt::format("previous_{}", k);
  fs::create_directory(to);
  for (const fs::path& file : old) fs::rename(file, to / file.filename());
  return to;
} catch (const fs::filesystem_error& e) {
  fail_storage(e.code().value(), fmt::format("cannot move the files of an earlier run in {} aside", dir.string()));
}

double wall_time() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

}  // namespace

RunFolder::RunFolder(const fs::path& dir, std::string_view config_yaml, bool tensorboard, double lease_s, const FolderLease::Say& say)
    : dir_(make_folder(dir)),
      lease_(dir_, lease_s, say),
      moved_to_(set_aside(dir_)),
      log_(make_file_log(dir_ / "log.txt")),
      metrics_(dir_ / "metrics.jsonl") {
  OutputFile(dir_ / "config.yaml", OutputFile::Mode::create_new).write(config_yaml);
  if (tensorboard) events_.emplace(dir_, wall_time());
  if (!lease_.taken_over().empty()) log_->warn("{}", lease_.taken_over());
  if (!moved_to_.empty()) log_->info("files of an earlier run were moved to {}", moved_to_.string());
}

void RunFolder::record(const StepMetrics& m) {
  lease_.check();
  metrics_.write(m);
  if (events_) events_->write(m, wall_time());
}

}  // namespace hlat
