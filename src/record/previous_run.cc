#include "record/previous_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace hlat {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kPrevious = "previous_";

// Numbers of the folders previous_N.
std::vector<int> numbers_in(const fs::path& parent) {
  std::vector<int> numbers;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(parent, none)) {
    const std::string name = entry.path().filename();
    int number = 0;
    if (!name.starts_with(kPrevious)) continue;
    const auto [end, error] = std::from_chars(name.data() + kPrevious.size(), name.data() + name.size(), number);
    if (error == std::errc() && end == name.data() + name.size()) numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

fs::path numbered(const fs::path& parent, int number) { return parent / fmt::format("{}{}", kPrevious, number); }

// Behind all that there are: a number that was removed does not come again.
fs::path make_next(const fs::path& parent) {
  const std::vector<int> numbers = numbers_in(parent);
  for (int k = numbers.empty() ? 1 : numbers.back() + 1;; ++k)
    if (const fs::path folder = numbered(parent, k); fs::create_directory(folder)) return folder;
}

// Whether it has records of steps and nothing else: no config, no log, no checkpoints.
bool has_only_steps(const fs::path& folder) {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename();
    if (name != "metrics.jsonl" && name != "eval.jsonl" && !name.starts_with("events.out.")) return false;
  }
  return !none;
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

void prune_repeated(const fs::path& run_folder, size_t most) {
  std::vector<fs::path> repeated;
  for (const int number : numbers_in(run_folder))
    if (const fs::path folder = numbered(run_folder, number); has_only_steps(folder)) repeated.push_back(folder);
  std::error_code none;
  for (size_t i = 0; i + most < repeated.size(); ++i) fs::remove_all(repeated[i], none);
}

void PreviousRun::sync(const fs::path& copied) {
  for (const fs::path& path : {copied, folder(), run_folder_}) sync_to_disk(path);
}

}  // namespace hlat
