#include "cli/batch_shown.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/format.h"

namespace hlat {

BatchShown::BatchShown(std::ostream& out, ProgressOptions options, size_t before, size_t all)
    : out_(out), options_(std::move(options)), before_(before), all_(all), begin_(options_.now()), shown_at_(begin_) {}

void BatchShown::show(size_t done) {
  constexpr double kLive = 0.25, kPlain = 30;  // seconds
  const double now = options_.now();
  if (now - shown_at_ < (options_.live ? kLive : kPlain)) return;
  shown_at_ = now;
  done = std::min(done, all_);
  std::string line = fmt::format("{} of {} prompts", done, all_);
  if (done > before_)
    line += ", ETA " + format_duration((now - begin_) * static_cast<double>(all_ - done) / static_cast<double>(done - before_));
  if (!options_.live) {
    out_ << line << '\n' << std::flush;
    return;
  }
  // One column is left free: some terminals wrap when the last one is filled.
  out_ << '\r' << line.substr(0, static_cast<size_t>(std::max(options_.width() - 1, 1))) << "\x1b[K" << std::flush;
  line_open_ = true;
}

void BatchShown::end_line() {
  if (line_open_) out_ << "\r\x1b[K" << std::flush;
  line_open_ = false;
}

}  // namespace hlat
