#include "cli/work_shown.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "base/format.h"

namespace hlat {

WorkShown::WorkShown(std::string what, uint64_t all_bytes)
    : WorkShown(std::cerr, progress_options(STDERR_FILENO, 0), std::move(what), all_bytes) {}

WorkShown::WorkShown(std::ostream& out, ProgressOptions options, std::string what, uint64_t all_bytes)
    : out_(out), options_(std::move(options)), what_(std::move(what)), all_bytes_(all_bytes), begin_(options_.now()), shown_at_(begin_) {}

WorkShown::~WorkShown() {
  if (line_open_) out_ << "\r\x1b[K" << std::flush;
}

void WorkShown::add(uint64_t bytes) {
  constexpr double kInterval = 0.25;  // seconds; work that ends within one shows nothing
  const std::lock_guard lock(mutex_);
  bytes_ += bytes;
  const double now = options_.now();
  if (!options_.live || now - shown_at_ < kInterval) return;
  shown_at_ = now;
  const double rate = static_cast<double>(bytes_) / (now - begin_);
  const double left = rate > 0 ? static_cast<double>(all_bytes_ - std::min(bytes_, all_bytes_)) / rate : 0;
  const std::string line = fmt::format("{}: {} of {}, {}/s, ETA {}", what_, format_bytes(bytes_), format_bytes(all_bytes_),
                                       format_bytes(static_cast<uint64_t>(rate)), format_duration(left));
  // One column is left free: some terminals wrap when the last one is filled.
  out_ << '\r' << line.substr(0, static_cast<size_t>(std::max(options_.width() - 1, 1))) << "\x1b[K" << std::flush;
  line_open_ = true;
}

}  // namespace hlat
