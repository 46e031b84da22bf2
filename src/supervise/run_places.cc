#include "supervise/run_places.h"

#include <algorithm>

#include "base/error.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/health_record.h"

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

namespace {

bool says_it_is_verified(const fs::path& folder) try { return is_verified(read_index(folder)); } catch (const Error&) {
  return false;  // damaged, gone, or on a disk that does not answer
}

}  // namespace

int64_t newest_checkpoint(const Config& config, int64_t below, bool verified) {
  const fs::path folder = config.checkpoint.dir.empty() ? fs::path(config.run.dir) / "checkpoints" : fs::path(config.checkpoint.dir);
  const std::vector<int64_t> steps = checkpoint_steps(folder);
  const auto newest = std::find_if(steps.rbegin(), steps.rend(), [&](int64_t step) {
    return (below == 0 || step < below) && (!verified || says_it_is_verified(checkpoint_path(folder, step)));
  });
  return newest == steps.rend() ? 0 : *newest;
}

}  // namespace hlat
