#include "cli/live_line.h"

#include <algorithm>

namespace hlat {

bool LiveLine::due(double now) {
  constexpr double kLive = 0.25, kPlain = 30;  // seconds
  if (now - shown_at_ < (options_.live ? kLive : kPlain)) return false;
  shown_at_ = now;
  return true;
}

void LiveLine::show(const std::string& line) {
  if (!options_.live) {
    out_ << line << '\n' << std::flush;
    return;
  }
  // One column is left free: some terminals wrap when the last one is filled.
  out_ << '\r' << line.substr(0, static_cast<size_t>(std::max(options_.width() - 1, 1))) << "\x1b[K" << std::flush;
  open_ = true;
}

void LiveLine::end() {
  if (open_) out_ << "\r\x1b[K" << std::flush;
  open_ = false;
}

}  // namespace hlat
