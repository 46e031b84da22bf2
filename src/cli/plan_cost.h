// hlat plan --machine with --nodes, --prices and faults: how a config scales, what a run costs, what is lost.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "plan/machine_costs.h"
#include "plan/search_report.h"

namespace hlat {

struct CostArgs {
  std::vector<int64_t> nodes;
  std::string tokens;               // "1.8T"; empty: the config's run
  std::vector<std::string> prices;  // machines to compare
  std::string price = "on_demand", region;
  std::string svg;
  std::string plot = "tokens";  // what the SVG shows
  // Faults on paper; in hours and seconds.
  std::optional<double> mtbf_h, detection_s, restart_s, save_stall_s, save_commit_s;
};

void add_cost_args(CLI::App& command, CostArgs& args);

double tokens_of(const Config& config, const CostArgs& args);  // of the whole run
// Columns for a table of layouts; empty where the machine has no nodes.
std::function<LayoutCost(double)> layout_costs(const MachinePlan& plan, const Config& config, const CostArgs& args, int64_t ranks);
// What the run costs on so many ranks, and what faults add where an MTBF is given or known.
std::string cost_text(const MachinePlan& plan, const Config& config, const TimedPlan& timed, const CostArgs& args);

void add_cost_json(nlohmann::ordered_json& j, const MachinePlan& plan, const Config& config, const TimedPlan& timed, const CostArgs& args);

// searches: the best layout for each number of nodes, instead of the config's own.
void show_scaling(const MachinePlan& plan, const Config& config, const CostArgs& args, bool searches, bool json);
void show_prices(const Config& config, const CostArgs& args, int64_t ranks, bool json);

}  // namespace hlat
