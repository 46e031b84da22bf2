// Rules about the data: rows that repeat themselves, a source that is read again and again.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "alarm/robust.h"
#include "alarm/rules.h"
#include "base/median.h"

namespace hlat {

namespace {

// Half of the tokens of the sampled rows continue an earlier part of the same row: far more than text or code does.
constexpr double kRepeats = 0.5;
constexpr size_t kRepeatLooks = 5;

// Whole rows are never alike by chance: a tenth of a batch that is there twice, three times in a row. Rows of a few tokens may be.
constexpr double kRowsAgain = 0.1;
constexpr size_t kRowLooks = 3;
constexpr int64_t kShortRow = 16;

// A source whose loss falls along a line (in its logarithm) through up to 64 measurements to less than half of what it would be had it
// fallen as the others', beyond noise, and lies below half of theirs, while they lose no more than a fifth. A source that is merely easy,
// such as tables or logs, falls early, while the others fall too, and then stays at its entropy; one that is learned by heart goes on
// falling.
constexpr size_t kSourceLooks = 64, kFewestSourceLooks = 48, kSourceEnds = 8;
constexpr double kSourceFell = 0.5, kOthersFell = 0.8, kSourceErrors = 5;

// In natural logarithms: the noise of a loss near 0 is a share of it.
struct SourceFall {
  std::string name;
  int64_t since = 0;
  double now = 0, fall = 0, error = 0;  // error: of the fall
};

// The first step of the latest measurements, kSourceEnds at a time, that were not yet a tenth below the first ones.
int64_t begin_of_fall(const std::vector<double>& steps, const std::vector<double>& losses, double begin) {
  const double high = begin + std::log(0.9);
  size_t since = 0;
  for (size_t i = 0; i + kSourceEnds <= losses.size(); i += kSourceEnds) {
    const auto first = losses.begin() + static_cast<std::ptrdiff_t>(i);
    if (upper_median({first, first + kSourceEnds}) >= high) since = i;
  }
  return static_cast<int64_t>(steps[since]);
}

// Not every measurement has rows of every source.
std::optional<SourceFall> fall_of_source(AlarmMemory& memory, int64_t step, const std::string& name, double loss) {
  constexpr double least = 1e-9, digits = 1000;  // a loss of 0 has no logarithm; more digits would only fill checkpoints
  std::vector<double>&steps = memory["steps of " + name], &losses = memory["log loss of " + name];
  if (steps.size() != losses.size()) steps.clear(), losses.clear();  // of a checkpoint of an earlier version
  keep(memory, "steps of " + name, static_cast<double>(step), kSourceLooks);
  const double rounded = std::round(digits * std::log(std::max(loss, least))) / digits;
  keep(memory, "log loss of " + name, rounded, kSourceLooks);
  if (losses.size() < kFewestSourceLooks) return {};
  return SourceFall{.name = name,
                    .since = begin_of_fall(steps, losses, upper_median({losses.begin(), losses.begin() + kSourceEnds})),
                    .now = upper_median({losses.end() - kSourceEnds, losses.end()}),
                    .fall = line_through(steps, losses).slope * (steps.back() - steps.front()),
                    .error = noise_of(losses) * std::sqrt(12 / static_cast<double>(losses.size()))};
}

std::optional<Finding> source_by_heart(const AlarmView& view, AlarmMemory& memory) {
  std::vector<SourceFall> falls;
  for (const auto& [name, loss] : view.monitors()->source_loss)
    if (std::isfinite(loss))
      if (auto fall = fall_of_source(memory, view.metrics.step, name, loss)) falls.push_back(std::move(*fall));
  for (const SourceFall& own : falls) {
    std::vector<double> losses_of_others, falls_of_others;
    for (const SourceFall& other : falls)
      if (&other != &own) losses_of_others.push_back(other.now), falls_of_others.push_back(other.fall);
    if (losses_of_others.empty() || own.now >= std::log(kSourceFell) + upper_median(losses_of_others)) continue;
    const double usual_fall = upper_median(falls_of_others), further = usual_fall - own.fall;
    if (usual_fall < std::log(kOthersFell) || further < std::max(-std::log(kSourceFell), kSourceErrors * own.error)) continue;
    return Finding{
        .value = std::exp(own.now),
        .limit = kSourceFell * std::exp(upper_median(losses_of_others)),
        .since = own.since,
        .evidence = fmt::format("the loss of source {} has fallen from {:.4f} to {:.4f} since step {}, that of the others to {:.1f}% of "
                                "what it was: it is learned by heart",
                                own.name, std::exp(own.now - own.fall), std::exp(own.now), own.since, 100 * std::exp(usual_fall))};
  }
  return {};
}

std::optional<Finding> rows_again(const AlarmView& view, AlarmMemory& memory) {
  const std::vector<double>& shares = keep(memory, "rows", view.monitors()->repeated_rows, kRowLooks);
  if (view.config.train.seq_len < kShortRow || shares.size() < kRowLooks) return {};
  if (*std::min_element(shares.begin(), shares.end()) <= kRowsAgain) return {};
  return Finding{.value = shares.back(),
                 .limit = kRowsAgain,
                 .since = std::max<int64_t>(1, view.metrics.step - static_cast<int64_t>(kRowLooks - 1) * view.config.monitor.every),
                 .evidence = fmt::format("{:.1f}% of the rows of a batch are there a second time, or were in the one measured before ({} "
                                         "measurements in a row)",
                                         100 * shares.back(), kRowLooks)};
}

}  // namespace

Look look_at_repetition(const AlarmView& view, AlarmMemory& memory) {
  const Monitors* own = view.monitors();
  if (own == nullptr) return {};
  // All keep their memories, whatever the others find.
  std::optional<Finding> source = source_by_heart(view, memory), rows = rows_again(view, memory);
  Look look{.looked = true, .found = rows ? rows : source};
  const std::vector<double>& shares = keep(memory, "repetition", own->repetition, kRepeatLooks);
  const double share = upper_median(shares);
  if (look.found || shares.size() < kRepeatLooks || share <= kRepeats) return look;
  look.found =
      Finding{.value = share,
              .limit = kRepeats,
              .since = std::max<int64_t>(1, view.metrics.step - static_cast<int64_t>(kRepeatLooks - 1) * view.config.monitor.every),
              .evidence = fmt::format("{:.1f}% of the tokens continue an earlier part of their own row (median of {} measurements)",
                                      100 * share, kRepeatLooks)};
  return look;
}

}  // namespace hlat
