#include "runtime/fit_check.h"

#include <algorithm>
#include <array>

#include "comm/host_exchange.h"

namespace hlat {

namespace {

// What every rank tells the others.
struct RankFit {
  bool fits = true;
  double available = 0, host_available = 0, resident = 0;
  std::array<char, 64> host{};
};

}  // namespace

void check_fit(const Config& config, const RankPlan& plan, const PlanTarget& target, const Fit& fit, Comm& world, const std::string& host) {
  RankFit own{.fits = fit.fits(config, plan), .available = fit.available, .host_available = fit.host_available, .resident = fit.resident};
  host.copy(own.host.data(), own.host.size() - 1);
  const std::vector<RankFit> all = all_gather_values(world, own);
  const auto bad = std::find_if(all.begin(), all.end(), [](const RankFit& r) { return !r.fits; });
  if (bad == all.end()) return;
  const auto rank = static_cast<int>(bad - all.begin());
  std::string text = all.size() > 1 ? fmt::format("rank {} on {}: ", rank, bad->host.data()) : "";
  // The dry runs of the remedies take a while; the others wait, so that the one who has all the words speaks first.
  if (world.rank() == 0) {
    Fit there = fit;
    there.available = bad->available, there.host_available = bad->host_available, there.resident = bad->resident;
    text += fit_text(config, {dry_run(config, target, rank)}, there, target);
  } else {
    text += fmt::format("does not fit on {}", fit.device);
  }
  world.barrier();
  throw UsageError(text);
}

void check_fit(const Config& config, const Assembly& assembly, Comm& world, const std::string& host) {
  check_fit(config, assembly.plan(), assembly.target(), assembly.fit(), world, host);
}

}  // namespace hlat
