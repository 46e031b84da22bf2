#include "base/thread_waiting.h"

#include <unistd.h>

#include <cstdlib>

namespace hlat {

bool waiting_is_undecided(const std::function<const char*(const char*)>& get) {
  return get(kSpinVariable) == nullptr && get("OMP_WAIT_POLICY") == nullptr;
}

void bound_spinning(char** argv) {
  if (!waiting_is_undecided([](const char* name) { return std::getenv(name); })) return;
  if (setenv(kSpinVariable, kSpinCount, 1) != 0) return;
  execv("/proc/self/exe", argv);  // returns only where it fails
}

}  // namespace hlat
