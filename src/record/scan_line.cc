#include "record/scan_line.h"

#include <fmt/format.h>

#include "base/format.h"

namespace hlat {

ScanLine::~ScanLine() {
  if (line_open_) out_ << "\n" << std::flush;
}

void ScanLine::show(const std::string& source, uint64_t files, uint64_t all_files, uint64_t bytes, uint64_t all_bytes) {
  constexpr double kQuiet = 1, kLive = 0.1, kPlain = 5;  // seconds
  const double now = now_();
  if (now - begin_ < kQuiet || now - shown_at_ < (live_ ? kLive : kPlain)) return;
  shown_at_ = now;
  const std::string line =
      fmt::format("indexing {}: {} of {} files, {} of {}", source, files, all_files, format_bytes(bytes), format_bytes(all_bytes));
  if (live_)
    out_ << "\r\x1b[K" << line << std::flush;
  else
    out_ << line << std::endl;
  line_open_ = live_;
}

}  // namespace hlat
