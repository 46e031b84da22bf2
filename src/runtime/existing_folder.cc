#include "runtime/existing_folder.h"

namespace hlat {

std::filesystem::path existing_folder(const std::filesystem::path& path) {
  std::error_code none;
  for (std::filesystem::path p = std::filesystem::absolute(path); !p.empty(); p = p.parent_path())
    if (std::filesystem::is_directory(p, none) || p == p.root_path()) return p;
  return ".";
}

}  // namespace hlat
