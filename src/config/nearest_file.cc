#include "config/nearest_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

#include "config/nearest.h"

namespace hlat {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostNames = 10000;  // of a folder that are looked at
constexpr size_t kShownNames = 5;

std::vector<std::string> files_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code failed;
  fs::directory_iterator entry(folder, failed);
  for (; !failed && entry != fs::directory_iterator() && names.size() < kMostNames; entry.increment(failed)) {
    std::error_code unknown;
    if (entry->is_regular_file(unknown)) names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// A file of the folder with the name that was given, with that name and an ending, or with a name like it.
std::string nearest_in(const fs::path& folder, const std::string& given) {
  const std::vector<std::string> names = files_in(folder);
  for (const std::string& name : names)
    if (name == given || fs::path(name).stem() == given) return name;
  const std::vector<std::string_view> views(names.begin(), names.end());
  return std::string(nearest(given, views));
}

std::string in_folder(const fs::path& folder) {
  const std::vector<std::string> names = files_in(folder);
  if (names.empty()) return "";
  const auto shown = names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kShownNames));
  return fmt::format("; its files are {}{}", fmt::join(names.begin(), shown, ", "), names.size() > kShownNames ? ", ..." : "");
}

}  // namespace

std::string file_hint(const std::string& path) {
  const fs::path given(path);
  std::error_code failed;
  if (fs::is_directory(given, failed)) return in_folder(given);
  const fs::path folder = given.has_parent_path() ? given.parent_path() : fs::path(".");
  if (!fs::is_directory(folder, failed)) {
    fs::path existing = folder;
    while (existing.has_parent_path() && existing != existing.parent_path() && !fs::is_directory(existing.parent_path(), failed))
      existing = existing.parent_path();
    return fmt::format("; there is no folder {}", existing.string());
  }
  // Configs often lie one folder down, and are called by their name alone.
  for (const fs::path& place : {folder, folder / "configs"}) {
    const std::string name = nearest_in(place, given.filename().string());
    if (name.empty()) continue;
    const fs::path found = place == folder && !given.has_parent_path() ? fs::path(name) : place / name;
    return fmt::format("; did you mean {}?", found.lexically_normal().string());
  }
  return path.starts_with('/') ? "" : fmt::format(" in the working folder {}", fs::current_path(failed).string());
}

}  // namespace hlat
