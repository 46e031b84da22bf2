#include "plan/remedies.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "config/validate.h"

namespace hlat {

namespace {

// One thing changed, in words and in a config.
struct Change {
  std::string text;
  std::function<void(Config&)> edit;
};

std::vector<Change> key_changes(const Config& config) {
  std::vector<Change> list;
  if (config.train.micro_batch > 1) list.push_back({"train.micro_batch=1", [](Config& c) { c.train.micro_batch = 1; }});
  for (const RecomputeKind kind : {RecomputeKind::selective, RecomputeKind::full}) {
    const Recompute r{.kind = kind, .every = 0};
    if (!(config.train.recompute == r)) list.push_back({"train.recompute=" + r.str(), [r](Config& c) { c.train.recompute = r; }});
  }
  if (config.parallel.tp > 1 && !config.parallel.sequence)
    list.push_back({"parallel.sequence=true", [](Config& c) { c.parallel.sequence = true; }});
  if (config.parallel.dp > 1 && !config.parallel.zero1) list.push_back({"parallel.zero1=true", [](Config& c) { c.parallel.zero1 = true; }});
  if (config.train.loss_chunk > 256) list.push_back({"train.loss_chunk=256", [](Config& c) { c.train.loss_chunk = 256; }});
  return list;
}

// Each takes less for the state than the one before. FP8 keeps less for the backward, so which is smaller depends on the model.
std::vector<Change> precision_changes(const Config& config) {
  std::vector<Change> list;
  if (!(config.precision == PrecisionConfig{})) return list;
  std::vector<PrecisionKind> kinds = {PrecisionKind::bf16_sr};
  if (precision_of(config).fp8) kinds.insert(kinds.begin(), PrecisionKind::fp8_sr);
  for (const PrecisionKind kind : kinds)
    if (config.train.precision != kind)
      list.push_back({fmt::format("train.precision={}", name_of(kind)), [kind](Config& c) { c.train.precision = kind; }});
  return list;
}

class Search {
 public:
  Search(const RankPlan& plan, const Fit& fit, const PlanTarget& target) : plan_(plan), fit_(fit), target_(target) {}

  // Nothing where the change is not allowed or takes no less.
  std::optional<Remedy> tried(const std::string& text, const Config& config) const {
    if (!validate(config).empty()) return {};
    const std::vector<RankPlan> stages = plan_stages(config, target_);
    const RankPlan& most = fullest(stages);
    if (most.memory.total() >= plan_.memory.total()) return {};
    const bool fits = std::all_of(stages.begin(), stages.end(), [&](const RankPlan& p) { return fit_.fits(config, p); });
    return Remedy{.change = text, .ranks = most.mesh.ranks(), .bytes = most.memory.total(), .fits = fits};
  }

  // The fewest ranks along an axis, doubled until it fits or the config allows no more.
  std::optional<Remedy> layout(const std::string& before, const Config& config, const char* key, int64_t ParallelConfig::*axis) const {
    Config c = config;
    for (;;) {
      c.parallel.*axis *= 2;
      c.parallel.cuts.clear();  // they belong to the number of stages given
      const auto remedy = tried(fmt::format("{}{}={}", before, key, c.parallel.*axis), c);
      if (!remedy) return {};
      if (remedy->fits) return remedy;
    }
  }

  std::vector<Remedy> layouts(const std::string& before, const Config& config) const {
    std::vector<Remedy> found;
    if (auto r = layout(before, config, "parallel.tp", &ParallelConfig::tp)) found.push_back(*r);
    if (auto r = layout(before, config, "parallel.pp", &ParallelConfig::pp)) found.push_back(*r);
    return found;
  }

 private:
  const RankPlan& plan_;
  const Fit& fit_;
  const PlanTarget& target_;
};

}  // namespace

std::vector<Remedy> remedies(const Config& config, const RankPlan& plan, const Fit& fit, const PlanTarget& target) {
  const Search search(plan, fit, target);
  std::vector<Remedy> found;
  Config all = config;
  const auto add = [&](const Change& change, size_t below) {
    Config c = config;
    change.edit(c);
    const auto remedy = search.tried(change.text, c);
    if (!remedy || remedy->bytes >= below) return below;
    found.push_back(*remedy);
    change.edit(all);
    return remedy->bytes;
  };
  for (const Change& change : key_changes(config)) add(change, plan.memory.total());
  size_t least = plan.memory.total();
  for (const Change& change : precision_changes(config)) least = add(change, least);
  // Of a key that is in several of them the last value, which need not be the best.
  const auto none_does_as_well = [&](const Remedy& r) {
    return std::none_of(found.begin(), found.end(), [&](const Remedy& one) { return one.bytes <= r.bytes; });
  };
  if (found.size() > 1)
    if (const auto remedy = search.tried("all of these, of each key the last", all); remedy && none_does_as_well(*remedy))
      found.push_back(*remedy);
  const bool keys_help = !found.empty();
  std::vector<Remedy> layouts = search.layouts("", config);
  if (layouts.empty() && keys_help) layouts = search.layouts("all of these and ", all);
  found.insert(found.end(), layouts.begin(), layouts.end());
  return found;
}

}  // namespace hlat
