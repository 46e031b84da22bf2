#include "base/memory_limits.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

namespace hlat {
namespace {

namespace fs = std::filesystem;

constexpr size_t kUnlimited = std::numeric_limits<size_t>::max();

// The number of a file that holds one; nothing when it is absent or says "max".
std::optional<size_t> number_in(const fs::path& file) {
  std::ifstream in(file);
  size_t value = 0;
  if (in >> value) return value;
  return {};
}

// The number after a word that begins a line: "inactive_file 4096", "VmHWM:   112 kB".
std::optional<size_t> number_after(const fs::path& file, std::string_view word) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string first;
    size_t value = 0;
    if (fields >> first && first == word && fields >> value) return value;
  }
  return {};
}

// The files of a version of control groups.
struct Names {
  const char* limit;
  const char* soft_limit;  // above it the kernel holds a process up; null: the version has none of this meaning
  const char* used;
  std::array<std::string_view, 3> reclaimable;  // in memory.stat, of the group and those below it; empty: no more
};
constexpr Names kV1{"memory.limit_in_bytes", nullptr, "memory.usage_in_bytes", {"total_inactive_file", "total_active_file"}};
constexpr Names kV2{"memory.max", "memory.high", "memory.current", {"inactive_file", "active_file", "slab_reclaimable"}};

size_t left_in(const fs::path& group, const Names& names) {
  size_t limit = number_in(group / names.limit).value_or(kUnlimited);
  if (names.soft_limit != nullptr) limit = std::min(limit, number_in(group / names.soft_limit).value_or(kUnlimited));
  if (limit == kUnlimited) return kUnlimited;
  const size_t used = number_in(group / names.used).value_or(0);
  size_t reclaimable = 0;
  for (const std::string_view name : names.reclaimable)
    if (!name.empty()) reclaimable += number_after(group / "memory.stat", name).value_or(0);
  const size_t kept = used - std::min(used, reclaimable);
  return limit - std::min(limit, kept);
}

// Of a group and all that it is nested in. A path that is not there is another namespace's name of the group that is mounted: the mount
// itself is then all that can be seen.
size_t left_on_the_way(const fs::path& mount, std::string_view path, const Names& names) {
  size_t left = left_in(mount, names);
  fs::path group = mount;
  for (const fs::path& part : fs::path(path).relative_path()) {
    group /= part;
    std::error_code ignored;
    if (part == ".." || !fs::is_directory(group, ignored)) break;
    left = std::min(left, left_in(group, names));
  }
  return left;
}

// Lines are "4:memory:/path" for version 1, and "0::/path" for version 2, which has one hierarchy for all.
size_t groups_leave(const fs::path& root) {
  const fs::path groups = root / "sys/fs/cgroup";
  std::ifstream in(root / "proc/self/cgroup");
  size_t left = kUnlimited;
  for (std::string line; std::getline(in, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",", path = line.substr(second + 1);
    if (controllers == ",,")
      left = std::min(left, left_on_the_way(groups, path, kV2));
    else if (controllers.find(",memory,") != std::string::npos)
      left = std::min(left, left_on_the_way(groups / "memory", path, kV1));
  }
  return left;
}

size_t kib_after(const fs::path& file, std::string_view word, size_t none) {
  const auto kib = number_after(file, word);
  return kib ? *kib * 1024 : none;
}

}  // namespace

size_t host_memory_available(const fs::path& root) {
  return std::min(kib_after(root / "proc/meminfo", "MemAvailable:", kUnlimited), groups_leave(root));
}

size_t resident_bytes(const fs::path& root) { return kib_after(root / "proc/self/status", "VmRSS:", 0); }
size_t peak_resident_bytes(const fs::path& root) { return kib_after(root / "proc/self/status", "VmHWM:", 0); }

}  // namespace hlat
