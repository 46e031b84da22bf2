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
    : line_(out, std::move(options)), what_(std::move(what)), all_bytes_(all_bytes), begin_(line_.now()) {}

void WorkShown::add(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_ += bytes;
  const double now = line_.now();
  if (!line_.live() || !line_.due(now)) return;
  const double rate = static_cast<double>(bytes_) / (now - begin_);
  const double left = rate > 0 ? static_cast<double>(all_bytes_ - std::min(bytes_, all_bytes_)) / rate : 0;
  line_.show(fmt::format("{}: {} of {}, {}/s, ETA {}", what_, format_bytes(bytes_), format_bytes(all_bytes_),
                         format_bytes(static_cast<uint64_t>(rate)), format_duration(left)));
}

}  // namespace hlat
