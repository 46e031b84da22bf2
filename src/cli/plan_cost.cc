#include "cli/plan_cost.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/format.h"
#include "base/json_text.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "config/nearest.h"
#include "plan/fault_report.h"
#include "plan/machine_library.h"
#include "plan/save_plan.h"

namespace hlat {

namespace {

constexpr std::array<std::string_view, 3> kPlots = {"tokens", "efficiency", "cost"};

PriceModel price_model(const std::string& name) {
  std::vector<std::string_view> names;
  for (int i = 0; i < kPriceModels; ++i) {
    if (name_of(static_cast<PriceModel>(i)) == name) return static_cast<PriceModel>(i);
    names.push_back(name_of(static_cast<PriceModel>(i)));
  }
  fail<UsageError>("--price {}: there is no such price model; there are {}", name, fmt::join(names, ", "));
}

int search_threads() { return static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); }

Scaling scale(const MachinePlan& plan, const Config& config, const CostArgs& args, bool searches) {
  std::vector<ScalingPoint> points;
  for (const int64_t nodes : args.nodes) {
    if (!searches) {
      points.push_back(scaling_point(plan, config, nodes));
      continue;
    }
    const SearchTarget target = plan.search_target(plan.ranks_of(nodes), {}, search_threads());
    try {
      const SearchResult found = search_layouts(config, target);
      points.push_back(scaling_point(plan, found.best.empty() ? found.smallest : found.best.front(), nodes));
    } catch (const UsageError& e) {
      points.push_back({.nodes = nodes, .ranks = plan.ranks_of(nodes), .problem = e.what()});
    }
  }
  const Machine& m = plan.machine();
  const ScalingAsk ask{
      .tokens = tokens_of(config, args), .price = node_price(m, price_model(args.price), args.region), .power = node_power(m, args.region)};
  return scaling_of(fmt::format("{} on {}", config.model.preset.empty() ? "this model" : config.model.preset, m.name), points, ask);
}

ScalingAxis plot_axis(const std::string& name) {
  const auto found = std::find(kPlots.begin(), kPlots.end(), name);
  if (found == kPlots.end()) fail<UsageError>("--plot {}: must be one of {}", name, fmt::join(kPlots, ", "));
  return static_cast<ScalingAxis>(found - kPlots.begin());
}

// Measured or given: what the machine file knows, then what the command line says.
std::optional<FaultReport> fault_report(const MachinePlan& plan, const Config& config, const TimedPlan& timed, const CostArgs& args) {
  const Machine& m = plan.machine();
  if (!args.mtbf_h && (!args.detection_s || !args.save_stall_s || !args.save_commit_s)) return {};
  const std::optional<double> mtbf = args.mtbf_h           ? args.mtbf_h
                                     : m.node_mtbf.known() ? std::optional(*m.node_mtbf.value / 3600)
                                                           : std::nullopt;
  if (!mtbf) return {};
  const auto given = [](const std::optional<double>& value, const Figure* figure, const char* option) {
    if (value) return *value;
    if (figure != nullptr && figure->known()) return *figure->value;
    fail<UsageError>("faults on paper need {}{}", option, figure == nullptr ? "" : fmt::format(", or {} of the machine file", figure->key));
  };
  FaultReport r;
  r.ask = {.nodes = plan.nodes_of(timed.ranks),
           .node_mtbf_h = *mtbf,
           .detection_s = given(args.detection_s, nullptr, "--detection"),
           .restart_s = given(args.restart_s, &m.restart, "--restart"),
           .save_stall_s = given(args.save_stall_s, nullptr, "--save-stall"),
           .commit_s = given(args.save_commit_s, nullptr, "--save-commit"),
           .step_s = timed.time.seconds};
  if (config.checkpoint.every > 0) r.every = config.checkpoint.every;
  r.useful_days = tokens_of(config, args) / timed.tokens_per_s() / 86400;
  r.price = node_price(m, price_model(args.price), args.region);
  return r;
}

std::string whole_days(double days) { return days < 10 ? fmt::format("{:.2f}", days) : fmt::format("{:.1f}", days); }

}  // namespace

void add_cost_args(CLI::App& command, CostArgs& args) {
  command.add_option("--nodes", args.nodes, "with --machine: one row for each number of nodes, 4,8,16")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(within(int64_t{1}, int64_t{1} << 20))
      ->type_name("LIST");
  command.add_option("--tokens", args.tokens, "tokens of the run, 1.8T; default: the config's")->type_name("N");
  command.add_option("--prices", args.prices, "compare these machines by the price of the run")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAMES");
  // Not in the help, which fits a screen; docs/planning.md has them.
  command.add_option("--price", args.price, "price model: on_demand, reserved_1y, reserved_3y, spot")->group("")->type_name("MODEL");
  command.add_option("--region", args.region, "region of prices and electricity; default: the machine file's first")
      ->group("")
      ->type_name("NAME");
  command.add_option("--svg", args.svg, "with --nodes: write a plot")->group("")->type_name("FILE");
  command.add_option("--plot", args.plot, "what the plot shows: tokens, efficiency or cost")->group("")->type_name("WHAT");
  const auto seconds = [&](const char* name, std::optional<double>& to, const char* help) {
    command.add_option(name, to, help)->check(within(0.0, 1e9))->group("")->type_name("S");
  };
  command.add_option("--mtbf", args.mtbf_h, "modelled faults: mean hours between failures of a node")
      ->check(within(1e-3, 1e9))
      ->group("")
      ->type_name("HOURS");
  seconds("--detection", args.detection_s, "seconds until a fault is known");
  seconds("--restart", args.restart_s, "seconds from there to the next step");
  seconds("--save-stall", args.save_stall_s, "seconds that a save adds to training");
  seconds("--save-commit", args.save_commit_s, "seconds until a save can be loaded");
}

double tokens_of(const Config& config, const CostArgs& args) {
  if (!args.tokens.empty()) return static_cast<double>(parse_tokens(args.tokens));
  return static_cast<double>(config.train.steps) * static_cast<double>(config.train.global_batch * config.train.seq_len);
}

std::function<LayoutCost(double)> layout_costs(const MachinePlan& plan, const Config& config, const CostArgs& args, int64_t ranks) {
  const NodePrice price = node_price(plan.machine(), price_model(args.price), args.region);
  const int64_t nodes = plan.nodes_of(ranks);
  const double tokens = tokens_of(config, args);
  return [=](double tokens_per_s) {
    const RunCost cost = cost_of({.tokens_per_s = tokens_per_s, .nodes = nodes, .tokens = tokens}, price);
    const auto words = [](const CostFigure& f) { return f.has_value() ? dollar_words(f.value()) : std::string("?"); };
    return LayoutCost{words(cost.cpt), words(cost.dollars), whole_days(cost.days)};
  };
}

std::string cost_text(const MachinePlan& plan, const Config& config, const TimedPlan& timed, const CostArgs& args) {
  const Machine& m = plan.machine();
  const NodePrice price = node_price(m, price_model(args.price), args.region);
  const CostAsk ask{.tokens_per_s = timed.tokens_per_s(), .nodes = plan.nodes_of(timed.ranks), .tokens = tokens_of(config, args)};
  const RunCost cost = cost_of(ask, price, node_power(m, args.region));
  std::string s = fmt::format("{} tokens on {} {}: {} days of steps, {} ({}{}), {} per 4M tokens\n", format_count(ask.tokens), ask.nodes,
                              ask.nodes == 1 ? "node" : "nodes", whole_days(cost.days), dollar_words(cost.dollars), price.model,
                              price.region.empty() ? "" : ", " + price.region, dollar_words(cost.cpt));
  if (cost.joules_per_token.has_value()) s += energy_words(cost) + "\n";
  if (const auto report = fault_report(plan, config, timed, args)) s += "\n" + fault_text(*report);
  return s;
}

void add_cost_json(nlohmann::ordered_json& j, const MachinePlan& plan, const Config& config, const TimedPlan& timed, const CostArgs& args) {
  const Machine& m = plan.machine();
  const CostAsk ask{.tokens_per_s = timed.tokens_per_s(), .nodes = plan.nodes_of(timed.ranks), .tokens = tokens_of(config, args)};
  const RunCost cost = cost_of(ask, node_price(m, price_model(args.price), args.region), node_power(m, args.region));
  j["cost"] = {{"tokens", ask.tokens},
               {"nodes", ask.nodes},
               {"days", cost.days},
               {"dollars", figure_json(cost.dollars)},
               {"dollars_per_4m_tokens", figure_json(cost.cpt)},
               {"joules_per_token", figure_json(cost.joules_per_token)},
               {"tonnes_co2", figure_json(cost.tonnes)}};
  if (const auto report = fault_report(plan, config, timed, args)) j["faults"] = fault_json(*report);
}

void show_scaling(const MachinePlan& plan, const Config& config, const CostArgs& args, bool searches, bool json) {
  const Scaling scaling = scale(plan, config, args, searches);
  if (!args.svg.empty()) {
    std::ofstream out(args.svg, std::ios::binary);
    out << scaling_svg({scaling}, plot_axis(args.plot), scaling.name);
    out.close();
    if (!out) fail<UsageError>("--svg {}: cannot be written", args.svg);
  }
  print_out(json ? json_text(scaling_json(scaling), 2) + "\n" : scaling_text(scaling));
}

void show_prices(const Config& config, const CostArgs& args, int64_t ranks, bool json) {
  std::vector<PriceOffer> offers;
  for (const std::string& name : args.prices) {
    const MachinePlan plan(find_machine(name));
    const int64_t nodes = !args.nodes.empty() ? args.nodes.front() : plan.nodes_of(std::max<int64_t>(ranks, 1));
    PriceOffer offer{.machine = plan.machine().name, .nodes = nodes, .prices = node_prices(plan.machine())};
    try {
      const SearchTarget target = plan.search_target(plan.ranks_of(nodes), {}, search_threads());
      const SearchResult found = search_layouts(config, target);
      if (found.best.empty())
        offer.problem = "nothing fits";
      else
        offer.tokens_per_s = found.best.front().plan.tokens_per_s();
    } catch (const UsageError& e) {
      offer.problem = e.what();
    }
    offers.push_back(std::move(offer));
  }
  const PriceTable table = price_table(offers, tokens_of(config, args));
  print_out(json ? json_text(price_json(table), 2) + "\n" : price_text(table));
}

}  // namespace hlat
