#include "base/thread_waiting.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace hlat {

bool waiting_is_undecided(const std::function<const char*(const char*)>& get) {
  return get(kSpinVariable) == nullptr && get("OMP_WAIT_POLICY") == nullptr;
}

void bound_spinning(char** argv) {
  if (!waiting_is_undecided([](const char* name) { return std::getenv(name); })) return;
  if (setenv(kSpinVariable, kSpinCount, 1) != 0) return;
  // Both return only where they fail. By its path, the process keeps its name in ps and pgrep; a file that was replaced has no path.
  constexpr const char* kSelf = "/proc/self/exe";
  std::error_code none;
  execv(std::filesystem::read_symlink(kSelf, none).c_str(), argv);
  execv(kSelf, argv);
}

}  // namespace hlat
