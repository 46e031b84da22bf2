#include "base/machine.h"

#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>

namespace hlat {

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 && name[0] != 0 ? name.data() : "localhost";
}

std::string boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::string user_cache_dir() {
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && *xdg == '/') return std::string(xdg) + "/hlat";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != 0) return std::string(home) + "/.cache/hlat";
  return {};
}

}  // namespace hlat
