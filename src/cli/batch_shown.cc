#include "cli/batch_shown.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/format.h"

namespace hlat {

BatchShown::BatchShown(std::ostream& out, ProgressOptions options, size_t before, size_t all)
    : line_(out, std::move(options)), before_(before), all_(all), begin_(line_.now()) {}

void BatchShown::show(size_t done) {
  const double now = line_.now();
  if (!line_.due(now)) return;
  done = std::min(done, all_);
  std::string line = fmt::format("{} of {} prompts", done, all_);
  if (done > before_)
    line += ", ETA " + format_duration((now - begin_) * static_cast<double>(all_ - done) / static_cast<double>(done - before_));
  line_.show(line);
}

}  // namespace hlat
