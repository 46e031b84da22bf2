#include "plan/micro_batch.h"

#include <algorithm>
#include <vector>

#include "config/validate.h"

namespace hlat {

namespace {

Config with(const Config& config, int64_t micro_batch) {
  Config c = config;
  c.train.micro_batch = micro_batch;
  return c;
}

bool plan_fits(const Config& config, const PlanTarget& target, const Fit& fit) {
  const std::vector<RankPlan> stages = plan_stages(config, target);
  return std::all_of(stages.begin(), stages.end(), [&](const RankPlan& p) { return fit.fits(config, p); });
}

int64_t rows_of_replica(const Config& config) { return config.train.global_batch / std::max<int64_t>(1, config.parallel.dp); }

bool is_allowed(const Config& config, int64_t n) { return rows_of_replica(config) % n == 0 && validate(with(config, n)).empty(); }

// Those that the other keys allow, in order.
std::vector<int64_t> candidates(const Config& config) {
  const int64_t rows = rows_of_replica(config);
  std::vector<int64_t> all;
  for (int64_t n = 1; n <= rows; ++n)
    if (is_allowed(config, n)) all.push_back(n);
  const auto fills_pipeline = [&](int64_t n) { return rows / n >= config.parallel.pp; };
  const auto end = std::partition_point(all.begin(), all.end(), fills_pipeline);
  if (end != all.begin()) all.erase(end, all.end());
  return all;
}

}  // namespace

int64_t largest_micro_batch(const Config& config, const PlanTarget& target, const Fit& fit) {
  const std::vector<int64_t> all = candidates(config);
  Fit careful = fit;
  careful.available *= kChosenShare;
  careful.host_available *= kChosenShare;
  // Memory grows with the micro-batch: no larger one fits where a smaller does not.
  const auto end = std::partition_point(all.begin(), all.end(), [&](int64_t n) { return plan_fits(with(config, n), target, careful); });
  return all.empty() ? 1 : end == all.begin() ? all.front() : *std::prev(end);
}

int64_t smallest_micro_batch(const Config& config) {
  if (config.train.micro_batch > 0) return config.train.micro_batch;
  for (int64_t n = 1; n <= rows_of_replica(config); ++n)
    if (is_allowed(config, n)) return n;
  return 1;
}

bool micro_batch_fits(const Config& config, const PlanTarget& target, const Fit& fit) {
  return validate(config).empty() && plan_fits(config, target, fit);
}

}  // namespace hlat
