#include "cli/eval_shown.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/format.h"

namespace hlat {

EvalShown::EvalShown(std::ostream& out, ProgressOptions options, std::vector<Part> parts)
    : out_(out), options_(std::move(options)), parts_(std::move(parts)), at_(options_.now()), shown_at_(at_) {}

double EvalShown::left_s(size_t task, int64_t examples) const {
  Pace any;
  for (const Pace& p : pace_) any.examples += p.examples, any.seconds += p.seconds;
  double seconds = 0;
  for (size_t t = task; t < parts_.size(); ++t) {
    const Pace& own = pace_.at(static_cast<size_t>(parts_[t].kind));
    const Pace& pace = own.examples > 0 ? own : any;
    const int64_t left = std::max<int64_t>(0, parts_[t].examples - (t == task ? examples : 0));
    if (pace.examples > 0) seconds += static_cast<double>(left) * pace.seconds / static_cast<double>(pace.examples);
  }
  return seconds;
}

void EvalShown::show(size_t task, int64_t examples) {
  constexpr double kRedrawn = 0.25, kLines = 30;  // seconds
  const double now = options_.now();
  Pace& pace = pace_.at(static_cast<size_t>(parts_.at(task).kind));
  pace.examples += std::max<int64_t>(0, examples - (task == task_ ? examples_ : 0));
  pace.seconds += now - at_;
  task_ = task, examples_ = examples, at_ = now;
  if (now - shown_at_ < (options_.live ? kRedrawn : kLines)) return;
  shown_at_ = now;
  const std::string line = fmt::format("{} ({} of {}): {} of {} examples, ETA {}", parts_[task].name, task + 1, parts_.size(), examples,
                                       parts_[task].examples, format_duration(left_s(task, examples)));
  if (!options_.live) {
    out_ << line << "\n" << std::flush;
    return;
  }
  // One column is left free: some terminals wrap when the last one is filled.
  out_ << '\r' << line.substr(0, static_cast<size_t>(std::max(options_.width() - 1, 1))) << "\x1b[K" << std::flush;
  line_open_ = true;
}

void EvalShown::end_line() {
  if (line_open_) out_ << "\r\x1b[K" << std::flush;
  line_open_ = false;
}

}  // namespace hlat
