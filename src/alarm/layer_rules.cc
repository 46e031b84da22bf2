// Rules that hold the parts of the model against each other and against what they were: the embedding, the blocks, the head. A part is
// told after several measurements in a row.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "alarm/robust.h"
#include "alarm/rules.h"
#include "base/median.h"
#include "config/precision_row.h"

namespace hlat {

namespace {

constexpr double kInARow = 3;         // measurements
constexpr double kLevelShare = 0.05;  // of a measurement in the running level of a part: some 20 of them count
constexpr double kFewestLooks = 5;    // before a level is one

// Gradient norms of the blocks of one model lie within a factor of ten or so of each other, in deep ones too.
constexpr double kDeadShare = 1e-3;
constexpr double kExplodesOthers = 20, kExplodesOwn = 5;
// Published models reach thousands in single channels of the residual stream.
constexpr double kLargeActivation = 3e4, kGrowing = 1.5;
// Scores of trained models stay below some hundred. Steps of bf16 are 0.5 from 64 on and 1 from 128 on: a softmax in it loses neighbours.
constexpr double kLargeScore = 500, kLargeScoreBf16 = 128, kGrowingScore = 1.2;

std::string name_of_part(size_t part, size_t parts) {
  return part == 0 ? "the embedding" : part + 1 == parts ? "the head" : fmt::format("block {}", part - 1);
}

bool all_finite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

// Blocks alone: embedding and head are of another kind.
double middle_of_blocks(const std::vector<double>& parts) {
  return parts.size() < 3 ? upper_median(parts) : upper_median({parts.begin() + 1, parts.end() - 1});
}

// A running level of each part, as a logarithm, and how often in a row a part was off. Lists whose length changed begin anew.
class PartLevels {
 public:
  PartLevels(AlarmMemory& memory, const std::string& name, size_t parts)
      : levels_(memory[name + ".levels"]), off_(memory[name + ".off"]), looks_(memory[name + ".looks"]) {
    if (levels_.size() == parts && looks_.size() == 1) return;
    levels_.assign(parts, 0);
    off_.assign(parts, 0);
    looks_.assign(1, 0);
  }
  bool known() const { return looks_[0] >= kFewestLooks; }
  double level(size_t part) const { return std::exp(levels_[part]); }
  // Whether it is off and has been so often enough.
  bool count(size_t part, bool off) { return (off_[part] = off ? off_[part] + 1 : 0) >= kInARow; }
  void add(const std::vector<double>& values) {
    const double share = std::max(kLevelShare, 1 / (looks_[0] + 1));
    for (size_t i = 0; i < values.size(); ++i)
      if (values[i] > 0) levels_[i] += share * (std::log(values[i]) - levels_[i]);
    looks_[0] += 1;
  }

 private:
  std::vector<double>&levels_, &off_, &looks_;
};

int64_t begin_of_row(const AlarmView& view) {
  return std::max<int64_t>(1, view.metrics.step - static_cast<int64_t>(kInARow - 1) * view.config.monitor.every);
}

// A value of one part far above those of the others and its own.
std::optional<Finding> explosion_in(const AlarmView& view, AlarmMemory& memory, const std::string& name, const std::vector<double>& parts) {
  if (parts.size() < 3) return {};
  if (!all_finite(parts)) {
    const auto part =
        static_cast<size_t>(std::find_if(parts.begin(), parts.end(), [](double v) { return !std::isfinite(v); }) - parts.begin());
    return Finding{.since = view.metrics.step,
                   .evidence = fmt::format("the {} of {} is {}", name, name_of_part(part, parts.size()), parts[part])};
  }
  PartLevels levels(memory, name, parts.size());
  const double others = middle_of_blocks(parts);
  std::optional<Finding> found;
  for (size_t i = 0; i < parts.size(); ++i) {
    const double limit = std::max(kExplodesOthers * others, kExplodesOwn * levels.level(i));
    if (!levels.count(i, levels.known() && others > 0 && parts[i] > limit) || found) continue;
    found = Finding{
        .value = parts[i],
        .limit = limit,
        .since = begin_of_row(view),
        .evidence = fmt::format("the {} of {} is {:.4g}, for {} measurements; the median of the blocks is {:.4g}, and its own level was "
                                "{:.4g}",
                                name, name_of_part(i, parts.size()), parts[i], kInARow, others, levels.level(i))};
  }
  levels.add(parts);
  return found;
}

// The largest of a list by block, which the head may follow: large and growing.
std::optional<Finding> large_in(const AlarmView& view, AlarmMemory& memory, const std::string& name, const std::vector<double>& blocks,
                                double limit, double growing) {
  if (blocks.empty() || !all_finite(blocks)) return {};
  const auto at = static_cast<size_t>(std::max_element(blocks.begin(), blocks.end()) - blocks.begin());
  const std::string place = at < static_cast<size_t>(view.config.model.layers) ? fmt::format("block {}", at) : "the head";
  PartLevels levels(memory, name, 1);
  const double level = levels.level(0);
  const bool off = levels.known() && blocks[at] > limit && blocks[at] > growing * level;
  const bool often = levels.count(0, off);
  levels.add({blocks[at]});
  if (!often) return {};
  return Finding{.value = blocks[at],
                 .limit = limit,
                 .since = begin_of_row(view),
                 .evidence = fmt::format("the {} of {} is {:.4g}, above {:.4g} for {} measurements and growing: its level was {:.4g}", name,
                                         place, blocks[at], limit, kInARow, level)};
}

}  // namespace

Look look_at_dead_layer(const AlarmView& view, AlarmMemory& memory) {
  const Monitors* own = view.monitors();
  if (own == nullptr || own->grad_norm.size() < 3 || !all_finite(own->grad_norm)) return {};
  const std::vector<double>& norms = own->grad_norm;
  PartLevels levels(memory, "norm", norms.size());
  const double others = middle_of_blocks(norms);
  Look look{.looked = true};
  for (size_t i = 0; i < norms.size(); ++i) {
    const bool block = i > 0 && i + 1 < norms.size();
    // Without own history all parts but blocks are judged by zero alone: nothing else is of their kind.
    const double limit = std::max(block ? kDeadShare * others : 0, levels.known() ? kDeadShare * std::min(levels.level(i), others) : 0);
    // Zero is dead even where it is the median: most blocks may be, or the only one.
    const bool dead = view.metrics.grad_norm > 0 && (norms[i] == 0 || norms[i] < limit);
    if (!levels.count(i, dead) || look.found) continue;
    look.found =
        Finding{.value = norms[i],
                .limit = limit,
                .since = begin_of_row(view),
                .evidence = fmt::format("the gradient norm of {} is {:.3g}, for {} measurements, where the median of the blocks is {:.3g}",
                                        name_of_part(i, norms.size()), norms[i], kInARow, others)};
  }
  levels.add(norms);
  return look;
}

Look look_at_exploding_layer(const AlarmView& view, AlarmMemory& memory) {
  const Monitors* own = view.monitors();
  if (own == nullptr || !view.settled) return {};
  // All three keep their memories, whatever the others find.
  std::optional<Finding> norm = explosion_in(view, memory, "gradient norm", own->grad_norm);
  std::optional<Finding> update = explosion_in(view, memory, "update ratio", own->update_ratio);
  std::optional<Finding> activation = large_in(view, memory, "largest activation", own->max_activation, kLargeActivation, kGrowing);
  return {.looked = true, .found = norm ? norm : update ? update : activation};
}

Look look_at_attention_logits(const AlarmView& view, AlarmMemory& memory) {
  const Monitors* own = view.monitors();
  if (own == nullptr || !view.settled) return {};
  const double limit = precision_row(view.config).softmax == "bf16" ? kLargeScoreBf16 : kLargeScore;
  std::optional<Finding> bound = large_in(view, memory, "log-sum-exp of attention scores", own->max_lse, limit, kGrowingScore);
  std::optional<Finding> exact = large_in(view, memory, "largest attention score", own->max_logit, limit, kGrowingScore);
  return {.looked = true, .found = exact ? exact : bound};
}

}  // namespace hlat
