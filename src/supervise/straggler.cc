#include "supervise/straggler.h"

#include <algorithm>
#include <cmath>

#include "base/median.h"

namespace hlat {

namespace {

constexpr double kMost = 0.75;      // of the window's steps
constexpr double kShortest = 1e-4;  // seconds: below, times are noise
constexpr size_t kFew = 8;          // ranks; among more, one of them does not move the median

}  // namespace

StragglerWatch::StragglerWatch(const LaunchConfig& config, int ranks)
    : factor_(config.straggler),
      window_(static_cast<size_t>(config.straggler_steps)),
      stage_(static_cast<size_t>(ranks), -1),
      compute_s_(static_cast<size_t>(ranks)),
      told_(static_cast<size_t>(ranks)) {}

void StragglerWatch::learn(const RankView& v) {
  const auto r = static_cast<size_t>(v.rank);
  if (v.tp > 0 && v.dp > 0) stage_[r] = v.rank / (v.tp * v.dp);
  std::map<int64_t, double>& times = compute_s_[r];
  for (const StepTime& s : v.steps)
    if (std::isfinite(s.compute_s) && s.seconds > 0) times.emplace(s.step, s.compute_s);
  while (times.size() > 2 * window_) times.erase(times.begin());
}

std::vector<Straggler> StragglerWatch::look(const RankViews& views) {
  HLAT_CHECK(views.size() == stage_.size(), "views of {} ranks, not {}", views.size(), stage_.size());
  if (factor_ <= 0) return {};
  bool more = false;
  for (const auto& v : views)
    if (v && !v->steps.empty()) learn(*v), more = true;
  return more ? judge(views) : std::vector<Straggler>{};
}

std::vector<int64_t> StragglerWatch::common_steps(const std::vector<size_t>& ranks) const {
  std::vector<int64_t> steps;
  for (const auto& [step, seconds] : compute_s_[ranks[0]]) {
    const bool all = std::all_of(ranks.begin(), ranks.end(), [&, at = step](size_t r) { return compute_s_[r].contains(at); });
    if (all) steps.push_back(step);
  }
  if (steps.size() > window_) steps.erase(steps.begin(), steps.end() - static_cast<int64_t>(window_));
  return steps;
}

// For each of the ranks, its ratios to its peers in these steps.
std::vector<std::vector<double>> StragglerWatch::ratios(const std::vector<size_t>& ranks, const std::vector<int64_t>& steps) const {
  std::vector<std::vector<double>> found(ranks.size());
  for (const int64_t step : steps) {
    std::vector<double> all;
    all.reserve(ranks.size());
    for (const size_t r : ranks) all.push_back(compute_s_[r].at(step));
    const double of_all = ranks.size() > kFew ? median(all) : 0;
    for (size_t i = 0; i < ranks.size(); ++i) {
      std::vector<double> peers = ranks.size() > kFew ? std::vector<double>() : all;
      if (!peers.empty()) peers.erase(peers.begin() + static_cast<int64_t>(i));
      found[i].push_back(all[i] / std::max(kShortest, peers.empty() ? of_all : median(peers)));
    }
  }
  return found;
}

std::vector<Straggler> StragglerWatch::judge(const RankViews& views) {
  std::map<int, std::vector<size_t>> stages;
  for (size_t r = 0; r < stage_.size(); ++r)
    if (stage_[r] >= 0) stages[stage_[r]].push_back(r);
  const auto window = static_cast<double>(window_);
  std::vector<Straggler> found;
  for (const auto& [stage, ranks] : stages) {
    const std::vector<int64_t> steps = ranks.size() < 2 ? std::vector<int64_t>() : common_steps(ranks);
    if (steps.size() < window_) continue;
    const std::vector<std::vector<double>> all = ratios(ranks, steps);
    for (size_t i = 0; i < ranks.size(); ++i) {
      const size_t r = ranks[i];
      const auto slow = static_cast<double>(std::count_if(all[i].begin(), all[i].end(), [&](double ratio) { return ratio > factor_; }));
      const bool is = slow >= kMost * window;
      if (is && !told_[r])
        found.push_back({.rank = static_cast<int>(r),
                         .host = views[r] ? views[r]->host : "",
                         .factor = median(all[i]),
                         .first_step = steps.front(),
                         .last_step = steps.back()});
      // In between it stays as it was told.
      if (is || slow <= (1 - kMost) * window) told_[r] = is;
    }
  }
  return found;
}

}  // namespace hlat
