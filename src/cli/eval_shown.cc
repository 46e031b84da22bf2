#include "cli/eval_shown.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/format.h"

namespace hlat {

EvalShown::EvalShown(std::ostream& out, ProgressOptions options, std::vector<Part> parts)
    : line_(out, std::move(options)), parts_(std::move(parts)), at_(line_.now()) {}

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
  const double now = line_.now();
  Pace& pace = pace_.at(static_cast<size_t>(parts_.at(task).kind));
  pace.examples += std::max<int64_t>(0, examples - (task == task_ ? examples_ : 0));
  pace.seconds += now - at_;
  task_ = task, examples_ = examples, at_ = now;
  if (line_.due(now))
    line_.show(fmt::format("{} ({} of {}): {} of {} examples, ETA {}", parts_[task].name, task + 1, parts_.size(), examples,
                           parts_[task].examples, format_duration(left_s(task, examples))));
}

}  // namespace hlat
