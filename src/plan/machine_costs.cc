#include "plan/machine_costs.h"

#include <fmt/format.h>

#include "base/error.h"
#include "config/resolve.h"

namespace hlat {

ScalingPoint scaling_point(const MachinePlan& plan, const Config& config, int64_t nodes) {
  ScalingPoint p{.nodes = nodes, .ranks = plan.ranks_of(nodes), .available_bytes = plan.fit(plan.ranks_of(nodes)).available};
  Config c = config;
  c.parallel.dp = 0;
  try {
    c = with_ranks(c, p.ranks, RanksAre::planned);
  } catch (const UsageError& e) {
    p.problem = e.what();
    return p;
  }
  p.layout = layout_words(c);
  const ScoredLayout scored = score_layout(c, plan.search_target(p.ranks, {}, 1));
  return scaling_point(plan, scored, nodes);
}

ScalingPoint scaling_point(const MachinePlan& plan, const ScoredLayout& layout, int64_t nodes) {
  ScalingPoint p{.nodes = nodes, .ranks = layout.config.parallel.ranks(), .layout = layout_words(layout.config)};
  p.available_bytes = plan.fit(plan.ranks_of(nodes)).available;
  p.needed_bytes = layout.needed;
  if (!layout.fits) return p;
  p.step_s = layout.seconds();
  p.tokens_per_s = layout.plan.tokens_per_s();
  if (const auto peak = plan.peak_flops(layout.config)) p.mfu = layout.plan.mfu(*peak);
  return p;
}

std::vector<NodePrice> node_prices(const Machine& machine) {
  std::vector<NodePrice> out;
  for (const Price& p : machine.prices)
    out.push_back({.model = std::string(name_of(p.model)),
                   .region = p.region,
                   .dollars_per_hour = p.dollars_per_hour.value,
                   .source = p.dollars_per_hour.source,
                   .date = p.dollars_per_hour.date,
                   .key = fmt::format("{} of {}", p.dollars_per_hour.key, machine.file)});
  return out;
}

NodePrice node_price(const Machine& machine, PriceModel model, const std::string& region) {
  for (const NodePrice& p : node_prices(machine))
    if (p.model == name_of(model) && (region.empty() || p.region == region)) return p;
  return {.model = std::string(name_of(model)), .region = region, .key = fmt::format("prices of {}", machine.file)};
}

NodePower node_power(const Machine& machine, const std::string& region) {
  NodePower out{.watts = machine.power.value, .watts_key = fmt::format("{} of {}", machine.power.key, machine.file)};
  out.grams_key = fmt::format("carbon of {}", machine.file);
  for (const Carbon& c : machine.carbon)
    if (region.empty() || c.region == region) {
      out.grams_per_kwh = c.grams_per_kwh.value;
      break;
    }
  return out;
}

}  // namespace hlat
