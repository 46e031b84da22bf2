// hlat plan: memory, FLOPs and whether it fits, from a dry run.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/json_text.h"
#include "cli/commands.h"
#include "cli/config_args.h"
#include "cli/config_warnings.h"
#include "cli/plan_machine.h"
#include "cli/print.h"
#include "config/nearest.h"
#include "parallel/mesh.h"
#include "plan/machine_plan.h"
#include "plan/micro_batch.h"
#include "plan/report.h"
#include "runtime/assembly.h"
#include "runtime/backends.h"
#include "runtime/device_comm.h"

namespace hlat {
namespace {

struct PlanArgs {
  ConfigArgs config;
  std::string device;
  int64_t ranks = 0;  // 0: as the config says
  int rank = -1;      // -1: one of each pipeline stage
  bool eval = false;
  bool json = false;
  MachineArgs machine;
  const CLI::App* command = nullptr;
};

// A device that a plan can be compared with, by name.
struct DeviceSpec {
  std::string name;
  double memory_bytes = 0;  // what a program can get
  int capability = 0;       // of an NVIDIA GPU; 0: none
};

const DeviceSpec& find_device(std::string_view name) {
  constexpr double gib = 1073741824.0, gb = 1e9;
  static const std::vector<DeviceSpec> devices = {
      {"h200", 139.8 * gib, 90},   {"h100", 79.1 * gib, 90}, {"a100-80", 79.2 * gib, 80},
      {"a100-40", 39.4 * gib, 80}, {"trn1", 16 * gb},  // one NeuronCore
  };
  std::vector<std::string_view> names;
  for (const DeviceSpec& d : devices) {
    if (d.name == name) return d;
    names.push_back(d.name);
  }
  const std::string_view best = nearest(name, names);
  throw UsageError(fmt::format("--device {}: unknown device; there are {}, and without --device this machine{}", name,
                               fmt::join(names, ", "), best.empty() ? "" : fmt::format("; did you mean {}?", best)));
}

Machine named_machine(const DeviceSpec& device) {
  Machine m;
  m.name = m.device = device.name;
  m.capability = device.capability;
  m.memory.set(device.memory_bytes, "hlat plan --device", "");
  return m;
}

// A given number of ranks or nodes takes the place of parallel.dp.
Config loaded(const PlanArgs& args, bool counted) {
  ConfigArgs config = args.config;
  if (counted) config.overrides.emplace_back("parallel.dp=auto");
  return config.load().config;
}

// Each way to plan has its own options; one that would be without effect is refused.
void refuse_ignored(const PlanArgs& args, const CLI::App& command) {
  const MachineArgs& m = args.machine;
  struct Mode {
    bool on;
    std::string words;
    std::vector<std::string> options;
  };
  const std::vector<std::string> money{"--tokens", "--price", "--region"},
      faults{"--mtbf", "--detection", "--restart", "--save-stall", "--save-commit"};
  const auto with = [](std::vector<std::string> a, std::initializer_list<std::vector<std::string>> more) {
    for (const auto& list : more) a.insert(a.end(), list.begin(), list.end());
    return a;
  };
  const std::vector<Mode> modes{{!m.cost.prices.empty(), "--prices", {"--prices", "--ranks", "--nodes", "--tokens"}},
                                {!m.machine.empty() && !m.cost.nodes.empty(), "--machine with --nodes",
                                 with({"--machine", "--nodes", "--search", "--svg", "--plot"}, {money})},
                                {!m.machine.empty() && m.search, "--machine with --search",
                                 with({"--machine", "--search", "--ranks", "--precision", "--out"}, {money})},
                                {!m.machine.empty(), "--machine", with({"--machine", "--ranks", "--timeline"}, {money, faults})},
                                {true, "a plan without --machine", {"--device", "--ranks", "--rank", "--eval"}}};
  const Mode& mode = *std::find_if(modes.begin(), modes.end(), [](const Mode& x) { return x.on; });
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0 || option->get_lnames().empty()) continue;
    const std::string name = "--" + option->get_lnames().front();  // get_name() is empty for those that the help leaves out
    if (name == "--config" || name == "--json" || name == "--help") continue;
    if (std::find(mode.options.begin(), mode.options.end(), name) == mode.options.end())
      fail<UsageError>("{}: has no effect with {}, which takes {}", name, mode.words, fmt::join(mode.options, ", "));
  }
}

void run_plan(const PlanArgs& args) {
  refuse_ignored(args, *args.command);
  const bool counted = args.ranks > 0 || !args.machine.cost.nodes.empty();
  if (!args.machine.cost.prices.empty()) return show_prices(loaded(args, counted), args.machine.cost, args.ranks, args.json);
  if (!args.machine.machine.empty()) return plan_on_machine(loaded(args, counted), args.machine, args.ranks, args.json);
  Config config = on_planned_ranks(loaded(args, args.ranks > 0), args.ranks);
  const int ranks = mesh_shape(config.parallel).ranks();
  if (args.rank >= ranks) throw UsageError(fmt::format("--rank {}: the mesh has ranks 0 to {}", args.rank, ranks - 1));
  const bool here = args.device.empty();
  const int local = here ? ranks : 1;  // without a named device, all ranks would run on this machine
  const auto backend = make_backend(config.device, {.threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / local)});
  const CommHere comm = here ? comm_here(config, *backend, ranks) : CommHere{};
  Fit fit = fit_here(*backend, comm.sharing, local);
  if (!here) fit = {.device = args.device, .available = find_device(args.device).memory_bytes};
  Region measuring;
  const auto ops = backend->make_ops(measuring);
  std::optional<MachinePlan> named;  // the scratch of a GPU that is not here
  if (!here) named.emplace(named_machine(find_device(args.device)));
  const PlanTarget target{.scratch_model = here ? ops.get() : named->target().scratch_model,
                          .transport = comm.transport,
                          .use = args.eval ? ParamUse::weights : ParamUse::training,
                          .cached = args.eval};
  const bool chooses = config.train.micro_batch == 0;
  if (chooses) config.train.micro_batch = largest_micro_batch(config, target, fit);
  const std::vector<RankPlan> plans = args.rank >= 0 ? std::vector{dry_run(config, target, args.rank)} : plan_stages(config, target);
  const std::vector<std::string> warnings = config_warnings(config);
  if (args.json) {
    nlohmann::ordered_json j = plan_json(config, plans, fit, target);
    j["warnings"] = warnings;
    print_out(fmt::format("{}\n", json_text(j, 2)));
    return;
  }
  print_out(fmt::format("{}\n{}{}", plan_table(config, plans, fit), chooses ? micro_batch_text(config) + "\n" : "",
                        fit_text(config, plans, fit, target)));
  for (const std::string& text : warnings) print_out(fmt::format("warning: {}\n", text));
}

}  // namespace

void add_plan_command(CLI::App& app) {
  const auto args = std::make_shared<PlanArgs>();
  CLI::App* command = app.add_subcommand("plan", "memory, FLOPs, time, the best layout and its price, without running (docs/planning.md)");
  add_config_args(*command, args->config, "hlat plan --config configs/hlat-7b.yaml --device h100 train.recompute=full");
  command->add_option("--device", args->device, "memory of a device instead of this machine: h200, h100, a100-80, a100-40, trn1")
      ->type_name("NAME");
  command->add_option("--ranks", args->ranks, "plan for this many ranks, with parallel.dp to match")
      ->check(within(int64_t{1}, int64_t{1} << 30))
      ->type_name("N");
  command->add_option("--rank", args->rank, "plan this rank; default: one of each pipeline stage")
      ->check(within(0, 1 << 30))
      ->group("")
      ->type_name("R");
  command->add_flag("--eval", args->eval, "plan an evaluation, with weights alone, instead of a training step");
  command->add_flag("--json", args->json, "print one JSON object");
  add_machine_args(*command, args->machine);
  args->command = command;
  command->callback([args] { run_plan(*args); });
}

}  // namespace hlat
