#include "record/previous_run.h"

#include <fmt/format.h>

#include "base/file.h"

namespace hlat {
namespace fs = std::filesystem;
namespace {

fs::path make_next(const fs::path& parent) {
  for (int k = 1;; ++k)
    if (const fs::path folder = parent / fmt::format("previous_{}", k); fs::create_directory(folder)) return folder;
}

fs::path full(const fs::path& path) {
  const fs::path clean = fs::absolute(path).lexically_normal();
  return clean.has_filename() ? clean : clean.parent_path();  // without a slash at the end
}

}  // namespace

const fs::path& PreviousRun::folder() try {
  if (folder_.empty()) folder_ = make_next(run_folder_);
  return folder_;
} catch (const fs::filesystem_error& e) {
  fail_storage(e.code().value(), fmt::format("cannot make a folder in {} for what an earlier run left", run_folder_.string()));
}

void PreviousRun::take(const fs::path& path) try {
  if (!fs::exists(fs::symlink_status(path))) return;
  const fs::path inside = full(path).lexically_relative(full(run_folder_));
  if (inside.empty() || *inside.begin() == "..") {
    fs::rename(path, make_next(full(path).parent_path()) / full(path).filename());
    return;
  }
  const fs::path to = folder() / inside;
  fs::create_directories(to.parent_path());
  fs::rename(path, to);
} catch (const fs::filesystem_error& e) {
  fail_storage(e.code().value(), fmt::format("cannot move {}, of an earlier run, aside", path.string()));
}

void PreviousRun::sync(const fs::path& copied) {
  for (const fs::path& path : {copied, folder(), run_folder_}) sync_to_disk(path);
}

}  // namespace hlat
