// Scaling, prices and power of a config on a machine model, from its figures.
#pragma once

#include "plan/machine_plan.h"
#include "plan/price_table.h"
#include "plan/scaling.h"

namespace hlat {

// The config's own tp and pp on so many nodes, with dp to match; or a layout that a search found.
ScalingPoint scaling_point(const MachinePlan& plan, const Config& config, int64_t nodes);
ScalingPoint scaling_point(const MachinePlan& plan, const ScoredLayout& layout, int64_t nodes);

std::vector<NodePrice> node_prices(const Machine& machine);
NodePrice node_price(const Machine& machine, PriceModel model, const std::string& region);  // unknown, with its key, where there is none
NodePower node_power(const Machine& machine, const std::string& region);

}  // namespace hlat
