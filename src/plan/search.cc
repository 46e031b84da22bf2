#include "plan/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <mutex>

#include "base/error.h"
#include "base/format.h"
#include "base/machine.h"
#include "checkpoint/for_all.h"
#include "plan/micro_batch.h"

namespace hlat {

namespace {

constexpr size_t kImproved = 3;  // layouts that are improved one choice at a time
constexpr int kRounds = 8;       // of improvement, at most

int64_t micros_of_step(const Config& c) { return c.train.global_batch / (c.train.micro_batch * c.parallel.dp); }

// The stages that may be the fullest, or compute most: the first holds the most micro-batches, the last has the head.
struct EndStages {
  bool fits = true;
  size_t bytes = 0;
  double needed = 0;
  double compute_s = 0;  // of the whole step, on the slower of the two: no step is shorter
};

EndStages look_at_ends(const Config& config, const SearchTarget& target, const StepClock& clock) {
  const Config few = shortened(config, 2);
  const MeshShape shape = mesh_shape(few.parallel);
  const double scale = static_cast<double>(micros_of_step(config)) / static_cast<double>(micros_of_step(few));
  EndStages out;
  for (int pp = 0; pp < shape.pp; pp += std::max(1, shape.pp - 1)) {
    StepTrace trace;
    const RankPlan plan = dry_run(few, target.plan, rank_of({.pp = pp}, shape), &trace);
    out.fits = out.fits && target.fit.fits(few, plan);
    out.bytes = std::max(out.bytes, plan.memory.total());
    out.needed = std::max(out.needed, target.fit.needed(few, plan));
    if (!out.fits) return out;
    std::vector<double> seconds;
    for (const TracedOp& o : trace.ops()) seconds.push_back(clock.op(o));
    double passes = 0, once = 0;
    for (const TraceEntry& e : trace.entries()) {
      if (e.kind != TraceKind::op) continue;
      const auto kind = static_cast<OpKind>(trace.ops()[e.index].kind);
      const bool update = kind == OpKind::adamw || kind == OpKind::sum_squares || kind == OpKind::sum || kind == OpKind::clip_scale;
      (update ? once : passes) += seconds[e.index];
    }
    out.compute_s = std::max(out.compute_s, passes * scale + once);
  }
  return out;
}

ScoredLayout score_ends(const Config& config, const SearchTarget& target, const StepClock& clock, const EndStages& ends) {
  ScoredLayout out{.config = config, .bytes = ends.bytes, .needed = ends.needed};
  if (!ends.fits) return out;
  out.plan = time_plan(config, target.plan, clock);
  out.fits = true;
  for (const RankPlan& p : out.plan.stages) {
    out.fits = out.fits && target.fit.fits(config, p);
    out.bytes = std::max(out.bytes, p.memory.total());
    out.needed = std::max(out.needed, target.fit.needed(config, p));
  }
  return out;
}

// Whether they differ in nothing but the tokens whose logits exist at a time, which next to no time depends on.
bool alike(const Config& a, Config b) {
  b.train.loss_chunk = a.train.loss_chunk;
  return a == b;
}

class LayoutSearch {
 public:
  LayoutSearch(const Config& config, const SearchTarget& target) : config_(config), target_(target) {}

  SearchResult run() {
    const double begin = now_s();
    const std::vector<LayoutFamily> families = layout_families(config_, target_.limits);
    if (families.empty()) throw UsageError(no_split());
    for_all(families.size(), target_.threads, [&](size_t i) { look_at(families[i]); });
    improve();
    if (out_.best.empty()) out_.enough_ranks = enough_ranks();
    out_.seconds = now_s() - begin;
    return std::move(out_);
  }

 private:
  // The fewest times two that something fits; 0: none of those tried.
  int64_t enough_ranks() const {
    for (int64_t ranks = 2 * target_.limits.ranks; ranks <= 64 * target_.limits.ranks; ranks *= 2) {
      SpaceLimits limits = target_.limits;
      limits.ranks = ranks;
      for (LayoutFamily& f : layout_families(config_, limits)) {
        f.config.train.recompute = f.recomputes.back();
        if (look_at_ends(f.config, target_, *target_.clock(f.config)).fits) return ranks;
      }
    }
    return 0;
  }

  std::string no_split() const {
    const int64_t most = target_.limits.most_tp * config_.model.layers * config_.train.global_batch;  // no split has more
    if (target_.limits.ranks > most)
      return fmt::format("{} ranks are more than tp, pp and dp of this model and a batch of {} can use: at most {}", target_.limits.ranks,
                         config_.train.global_batch, most);
    for (int64_t more = 1; more <= most; ++more)
      for (const int64_t ranks : {target_.limits.ranks - more, target_.limits.ranks + more}) {
        SpaceLimits limits = target_.limits;
        limits.ranks = ranks;
        if (ranks >= 1 && !layout_families(config_, limits).empty())
          return fmt::format("{} ranks cannot be split into tp x pp x dp for this model and a batch of {}; {} ranks can",
                             target_.limits.ranks, config_.train.global_batch, ranks);
      }
    return fmt::format("{} ranks cannot be split into tp x pp x dp for this model and batch", target_.limits.ranks);
  }

  // Micro-batches and recomputation of one split. What a policy cannot hold with some micro-batch it cannot with a larger one.
  void look_at(const LayoutFamily& family) {
    for (const Recompute& r : family.recomputes)
      for (const int64_t micro : family.micro_batches) {
        Config c = family.config;
        c.train.recompute = r;
        c.train.micro_batch = micro;
        if (!consider(c)) break;
      }
  }

  // Whether it fits.
  bool consider(const Config& c) {
    const auto clock = target_.clock(c);
    const EndStages ends = look_at_ends(c, target_, *clock);
    {
      const std::lock_guard lock(mutex_);
      ++out_.layouts;
      if (!ends.fits) {
        ++out_.too_large;
        note_smallest(c, ends.bytes, ends.needed);
        return false;
      }
      if (ends.compute_s > slowest_shown()) return true;  // its computing alone takes longer
      ++out_.timed;
    }
    keep(score_ends(c, target_, *clock, ends));
    return true;
  }

  void note_smallest(const Config& c, size_t bytes, double needed) {
    if (out_.smallest.needed > 0 && out_.smallest.needed <= needed) return;
    out_.smallest = {.config = c, .fits = false, .bytes = bytes, .needed = needed};
  }

  double slowest_shown() const {
    return out_.best.size() < target_.shown ? std::numeric_limits<double>::infinity() : out_.best.back().seconds();
  }

  void keep(ScoredLayout layout) {
    const std::lock_guard lock(mutex_);
    if (!layout.fits) {
      ++out_.too_large;
      note_smallest(layout.config, layout.bytes, layout.needed);
      return;
    }
    for (auto b = out_.best.begin(); b != out_.best.end(); ++b) {
      if (!alike(b->config, layout.config)) continue;
      if (b->seconds() <= layout.seconds()) return;
      out_.best.erase(b);
      break;
    }
    const auto place = std::upper_bound(out_.best.begin(), out_.best.end(), layout,
                                        [](const ScoredLayout& a, const ScoredLayout& b) { return a.seconds() < b.seconds(); });
    out_.best.insert(place, std::move(layout));
    if (out_.best.size() > target_.shown) out_.best.pop_back();
  }

  // From each of the best, step by step to the fastest neighbour, as long as one is faster.
  void improve() {
    const std::vector<ScoredLayout> starts(out_.best.begin(),
                                           out_.best.begin() + static_cast<int64_t>(std::min(kImproved, out_.best.size())));
    for (ScoredLayout at : starts)
      for (int round = 0; round < kRounds; ++round) {
        const std::vector<ScoredLayout> near = score_all(neighbours(at.config, target_.limits));
        const auto fastest = std::min_element(near.begin(), near.end(), [](const ScoredLayout& a, const ScoredLayout& b) {
          return (a.fits ? a.seconds() : 1e300) < (b.fits ? b.seconds() : 1e300);
        });
        if (fastest == near.end() || !fastest->fits || fastest->seconds() >= at.seconds()) break;
        at = *fastest;
      }
    if (out_.best.empty()) return;
    const ScoredLayout winner = out_.best.front();
    const std::vector<LayoutChange> changes = neighbours(winner.config, target_.limits);
    const std::vector<ScoredLayout> near = score_all(changes);
    for (size_t i = 0; i < changes.size(); ++i)
      out_.neighbours.push_back({.words = changes[i].words,
                                 .config = changes[i].config,
                                 .fits = near[i].fits,
                                 .seconds = near[i].fits ? near[i].seconds() : 0,
                                 .why = near[i].fits ? why_slower(winner, near[i]) : too_large(near[i])});
  }

  std::string too_large(const ScoredLayout& s) const {
    return fmt::format("needs {} of {}", format_bytes(static_cast<uint64_t>(s.needed)),
                       format_bytes(static_cast<uint64_t>(target_.fit.available)));
  }

  // Neighbours that were scored before are not scored again.
  std::vector<ScoredLayout> score_all(const std::vector<LayoutChange>& changes) {
    std::vector<ScoredLayout> scored(changes.size());
    for_all(changes.size(), target_.threads, [&](size_t i) {
      {
        const std::lock_guard lock(mutex_);
        for (const ScoredLayout& known : scored_)
          if (known.config == changes[i].config) {
            scored[i] = known;
            return;
          }
        ++out_.layouts;
      }
      scored[i] = score_layout(changes[i].config, target_);
      const std::lock_guard lock(mutex_);
      ++(scored[i].fits ? out_.timed : out_.too_large);
      scored_.push_back(scored[i]);
    });
    for (const ScoredLayout& s : scored)
      if (s.fits) keep(s);
    return scored;
  }

  const Config& config_;
  const SearchTarget& target_;
  std::mutex mutex_;
  std::vector<ScoredLayout> scored_;  // neighbours
  SearchResult out_;
};

}  // namespace

ScoredLayout score_layout(const Config& given, const SearchTarget& target) {
  Config config = given;
  if (config.train.micro_batch == 0) config.train.micro_batch = largest_micro_batch(config, target.plan, target.fit);
  const auto clock = target.clock(config);
  return score_ends(config, target, *clock, look_at_ends(config, target, *clock));
}

// Where the time went that the winner does not spend: the largest of the differences on the stages that compute most.
std::string why_slower(const ScoredLayout& winner, const ScoredLayout& other) {
  const StageTime &a = winner.plan.time.busiest(), &b = other.plan.time.busiest();
  struct Difference {
    std::string words;
    double more;
  };
  std::vector<Difference> parts{{"computing", b.computed() - b.optimizer() - (a.computed() - a.optimizer())},
                                {"in the update", b.optimizer() - a.optimizer()},
                                {"idle in the pipeline", b.bubble - a.bubble},
                                {"slowed by overlap or shared cores", b.slowed - a.slowed}};
  for (int axis = 0; axis < kAxes; ++axis)
    parts.push_back({fmt::format("waiting for {}", name_of(static_cast<Axis>(axis))),
                     b.exposed[static_cast<size_t>(axis)] - a.exposed[static_cast<size_t>(axis)]});
  const auto most = std::max_element(parts.begin(), parts.end(), [](const Difference& x, const Difference& y) { return x.more < y.more; });
  const double percent = 100 * (other.seconds() / winner.seconds() - 1);
  if (percent < 0.05) return "as fast";
  return fmt::format("+{:.1f} %: {:.3g} s more {}", percent, most->more, most->words);
}

SearchResult search_layouts(const Config& config, const SearchTarget& target) { return LayoutSearch(config, target).run(); }

}  // namespace hlat
