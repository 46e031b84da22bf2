#include "base/cache_dir.h"

#include <cstdlib>

namespace hlat {

std::string user_cache_dir() {
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && *xdg == '/') return std::string(xdg) + "/hlat";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != 0) return std::string(home) + "/.cache/hlat";
  return {};
}

}  // namespace hlat
