#include "supervise/run_places.h"

#include <algorithm>

#include "base/error.h"
#include "checkpoint/checkpoint_folder.h"

namespace hlat {

namespace fs = std::filesystem;

fs::path make_launch_folder(const Config& config) {
  const fs::path folder = fs::path(config.run.dir) / "launch";
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail<UsageError>("run.dir = {}: {}", config.run.dir, error.message());
  return folder;
}

std::vector<fs::path> locked_folders(const Config& config) {
  std::vector<fs::path> folders{config.run.dir};
  if (!config.checkpoint.dir.empty()) folders.emplace_back(config.checkpoint.dir);
  return folders;
}

int64_t newest_checkpoint(const Config& config, int64_t below) {
  const fs::path folder = config.checkpoint.dir.empty() ? fs::path(config.run.dir) / "checkpoints" : fs::path(config.checkpoint.dir);
  int64_t newest = 0;
  for (const int64_t step : checkpoint_steps(folder))
    if (below == 0 || step < below) newest = std::max(newest, step);
  return newest;
}

}  // namespace hlat
