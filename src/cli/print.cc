#include "cli/print.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"

namespace hlat {

void print_out(std::string_view text) {
  errno = 0;
  const bool stored = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (!stored && errno != EPIPE) fail<FaultError>("cannot write to standard output: {}", std::strerror(errno));
}

void print_err(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace hlat
