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

// A source whose loss has halved within the window, to less than half of the others', which have fallen by less than 15 %.
constexpr size_t kSourceLooks = 24, kSourceEnds = 4;
constexpr double kSourceFell = 0.5, kOthersFell = 0.85;

struct SourceFall {
  std::string name;
  int64_t since = 0;
  double begin = 0, now = 0;
};

// Not every measurement has rows of every source.
std::optional<SourceFall> fall_of_source(AlarmMemory& memory, int64_t step, const std::string& name, double loss) {
  const std::vector<double>& steps = keep(memory, "steps of " + name, static_cast<double>(step), kSourceLooks);
  const std::vector<double>& losses = keep(memory, "loss of " + name, loss, kSourceLooks);
  if (losses.size() < 3 * kSourceEnds) return {};
  return SourceFall{.name = name,
                    .since = static_cast<int64_t>(steps.front()),
                    .begin = upper_median({losses.begin(), losses.begin() + kSourceEnds}),
                    .now = upper_median({losses.end() - kSourceEnds, losses.end()})};
}

std::optional<Finding> source_by_heart(const AlarmView& view, AlarmMemory& memory) {
  std::vector<SourceFall> falls;
  for (const auto& [name, loss] : view.monitors()->source_loss)
    if (std::isfinite(loss))
      if (auto fall = fall_of_source(memory, view.metrics.step, name, loss)) falls.push_back(std::move(*fall));
  for (const SourceFall& own : falls) {
    std::vector<double> now, shares;
    for (const SourceFall& other : falls)
      if (&other != &own) now.push_back(other.now), shares.push_back(other.now / other.begin);
    if (now.empty() || own.now >= kSourceFell * own.begin || own.now >= kSourceFell * upper_median(now)) continue;
    if (upper_median(shares) < kOthersFell) continue;
    return Finding{
        .value = own.now,
        .limit = kSourceFell * upper_median(now),
        .since = own.since,
        .evidence = fmt::format("the loss of source {} has fallen from {:.4f} to {:.4f} in {} steps, that of the others to {:.1f}% of what "
                                "it was: it is learned by heart",
                                own.name, own.begin, own.now, view.metrics.step - own.since, 100 * upper_median(shares))};
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
