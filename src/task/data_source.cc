#include "task/data_source.h"

#include <algorithm>

namespace hlat {

namespace fs = std::filesystem;

std::vector<std::string> subtasks_of(const std::vector<std::string>& alternatives, const fs::path& folder) {
  std::vector<std::string> found;
  for (const std::string& name : alternatives) {
    const std::string pattern = fs::path(name).filename().string();
    const size_t star = pattern.find('*');
    std::error_code ignored;  // a folder that is not there has no files
    if (star == std::string::npos) {
      if (fs::is_regular_file(folder / name, ignored)) return {""};
      continue;
    }
    const std::string before = pattern.substr(0, star), after = pattern.substr(star + 1);
    for (const fs::directory_entry& entry : fs::directory_iterator((folder / name).parent_path(), ignored)) {
      const std::string file = entry.path().filename().string();
      if (file.size() > before.size() + after.size() && file.starts_with(before) && file.ends_with(after))
        found.push_back(file.substr(before.size(), file.size() - before.size() - after.size()));
    }
    if (!found.empty()) break;
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::optional<std::string> find_file(const std::vector<std::string>& alternatives, const fs::path& folder, const std::string& subtask) {
  for (std::string name : alternatives) {
    const size_t star = name.find('*');
    if (star != std::string::npos) name.replace(star, 1, subtask);
    std::error_code ignored;
    if (fs::is_regular_file(folder / name, ignored)) return (folder / name).lexically_normal().string();
  }
  return std::nullopt;
}

}  // namespace hlat
