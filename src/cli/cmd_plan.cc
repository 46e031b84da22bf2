// hlat plan: memory, FLOPs and whether it fits, from a dry run.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/config_args.h"
#include "plan/devices.h"
#include "plan/report.h"
#include "runtime/backends.h"

namespace hlat {
namespace {

struct Args {
  ConfigArgs config;
  std::string device;
  bool json = false;
};

void run(const Args& args) {
  const Config config = args.config.load().config;
  const auto backend = make_backend(config.device);
  Region measuring;
  const auto scratch_model = backend->make_ops(measuring);
  const bool here = args.device.empty();
  Fit fit{.device = "this machine", .available = static_cast<double>(backend->device().memory_available())};
  if (!here) fit = {.device = args.device, .available = find_device(args.device).memory_bytes};
  // A named device is planned without scratch: how much its libraries take is not known here.
  const Ops* scratch = here ? scratch_model.get() : nullptr;
  const Plan plan = dry_run(config, scratch);
  if (args.json)
    fmt::print("{}\n", plan_json(config, plan, fit).dump(2));
  else
    fmt::print("{}\n{}", plan_table(config, plan), fit_text(config, plan, fit, scratch));
}

}  // namespace

void add_plan_command(CLI::App& app) {
  const auto args = std::make_shared<Args>();
  CLI::App* command = app.add_subcommand("plan", "memory, FLOPs and whether it fits, without running");
  add_config_args(*command, args->config);
  command->add_option("--device", args->device, "hold the plan against a known device instead of this machine");
  command->add_flag("--json", args->json, "print one JSON object");
  command->callback([args] { run(*args); });
}

}  // namespace hlat
