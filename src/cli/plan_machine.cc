#include "cli/plan_machine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/json_text.h"
#include "cli/config_warnings.h"
#include "cli/print.h"
#include "config/print.h"
#include "config/resolve.h"
#include "plan/machine_library.h"
#include "plan/machine_plan.h"
#include "plan/micro_batch.h"
#include "plan/report.h"
#include "plan/search_report.h"
#include "plan/time_report.h"
#include "plan/timeline.h"

namespace hlat {
namespace {

void write_text(const std::string& path, const std::string& option, const std::string& text) {
  if (std::filesystem::exists(path)) fail<UsageError>("{} {}: it is there already; nothing is overwritten", option, path);
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) fail<UsageError>("{} {}: cannot be written", option, path);
}

std::vector<PrecisionKind> precisions_of(const MachineArgs& args) {
  std::vector<PrecisionKind> out;
  for (const std::string& name : args.precisions) {
    const auto found = std::find(kPrecisionNames.begin(), kPrecisionNames.end(), name);
    if (found == kPrecisionNames.end()) {
      fail<UsageError>("--precision {}: there is no such precision; there are {}", name, fmt::join(kPrecisionNames, ", "));
    }
    out.push_back(static_cast<PrecisionKind>(found - kPrecisionNames.begin()));
  }
  return out;
}

std::string estimates_text(const std::vector<std::string>& lines) {
  std::string s;
  for (const std::string& line : lines) s += "estimated: " + line + "\n";
  return s;
}

void show_time(const MachinePlan& plan, Config config, const MachineArgs& args, bool json) {
  const Fit fit = plan.fit(config.parallel.ranks());
  const bool chooses = config.train.micro_batch == 0;
  if (chooses) config.train.micro_batch = largest_micro_batch(config, plan.target(), fit);
  const bool trace = !args.timeline.empty();
  const TimedPlan timed = plan.time(config, trace ? Play::whole : Play::shortened, trace);
  const std::vector<RankPlan> stages = plan_stages(config, plan.target());
  if (trace) write_text(args.timeline, "--timeline", chrome_trace(timed.time));
  const std::vector<std::string> estimates = plan.estimates(config);
  const auto peak = plan.peak_flops(config);
  if (json) {
    nlohmann::ordered_json j = plan_json(config, stages, fit, plan.target());
    j["machine"] = plan.machine().name;
    j["time"] = time_json(timed, peak);
    add_cost_json(j, plan, config, timed, args.cost);
    j["estimates"] = estimates;
    j["warnings"] = config_warnings(config);
    print_out(json_text(j, 2) + "\n");
    return;
  }
  print_out(fmt::format("{}\n{}{}\n{}\n{}", plan_table(config, stages, fit), chooses ? micro_batch_text(config) + "\n" : "",
                        fit_text(config, stages, fit, plan.target()), time_text(timed, peak) + cost_text(plan, config, timed, args.cost),
                        estimates_text(estimates)));
  for (const std::string& text : config_warnings(config)) print_out(fmt::format("warning: {}\n", text));
}

void show_search(const MachinePlan& plan, const Config& config, const MachineArgs& args, int64_t ranks, bool json) {
  if (ranks == 0) ranks = config.parallel.tp * config.parallel.pp * std::max<int64_t>(1, config.parallel.dp);
  const int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const SearchTarget target = plan.search_target(ranks, precisions_of(args), threads);
  const SearchResult found = search_layouts(config, target);
  SearchShown shown{.peak_flops = [&](const Config& c) { return plan.peak_flops(c); },
                    .cost = layout_costs(plan, config, args.cost, ranks),
                    .precisions = !args.precisions.empty()};
  // The config's own layout, where these ranks allow it.
  try {
    shown.others.emplace_back("given", score_layout(on_planned_ranks(config, ranks), target));
  } catch (const UsageError&) {
  }
  if (!args.out.empty() && !found.best.empty()) {
    Config winner = found.best.front().config;
    winner.parallel.dp = 0;  // as many as are started
    write_text(args.out, "--out", to_yaml(winner));
  }
  if (json) {
    nlohmann::ordered_json j = search_json(found, target, shown);
    j["machine"] = plan.machine().name;
    if (!found.best.empty()) j["estimates"] = plan.estimates(found.best.front().config);
    print_out(json_text(j, 2) + "\n");
    return;
  }
  print_out(search_text(found, target, shown));
  if (!found.best.empty()) print_out("\n" + estimates_text(plan.estimates(found.best.front().config)));
  if (!args.out.empty() && !found.best.empty()) print_out(fmt::format("wrote {}\n", args.out));
}

}  // namespace

Config on_planned_ranks(const Config& config, int64_t ranks) {
  const ParallelConfig& p = config.parallel;
  if (ranks == 0) return with_ranks(config, p.tp * p.pp * std::max<int64_t>(1, p.dp), RanksAre::planned);
  Config c = config;
  c.parallel.dp = 0;
  return with_ranks(c, ranks, RanksAre::planned);
}

void add_machine_args(CLI::App& command, MachineArgs& args) {
  command.add_option("--machine", args.machine, "a machine model: a name of machines/, or a file (hlat bench machine makes one)")
      ->type_name("NAME");
  command.add_flag("--search", args.search, "look for the fastest layout of --ranks ranks on --machine");
  command.add_option("--precision", args.precisions, "with --search: policies to choose among; default: the config's own")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->group("")  // not in the help, which fits a screen
      ->type_name("NAMES");
  command.add_option("--out", args.out, "with --search: write the winner as a config")->type_name("FILE");
  command.add_option("--timeline", args.timeline, "write the simulated step as a Chrome trace, for Perfetto")->group("")->type_name("FILE");
  add_cost_args(command, args.cost);
}

void plan_on_machine(const Config& config, const MachineArgs& args, int64_t ranks, bool json) {
  const MachinePlan plan(find_machine(args.machine));
  if (!args.cost.nodes.empty()) return show_scaling(plan, config, args.cost, args.search, json);
  if (args.search) return show_search(plan, config, args, ranks, json);
  show_time(plan, on_planned_ranks(config, ranks), args, json);
}

}  // namespace hlat
