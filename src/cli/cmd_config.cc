// hlat config: the resolved configuration, and the reference of all keys.
#include <fmt/format.h>

#include <memory>

#include "base/json_text.h"
#include "cli/commands.h"
#include "cli/config_args.h"
#include "config/print.h"

namespace hlat {
namespace {

struct Args {
  ConfigArgs config;
  bool json = false;
  bool reference = false;
};

void run(const Args& args) {
  if (args.reference) {
    fmt::print("{}", config_reference());
    return;
  }
  const Config config = args.config.load().config;
  if (args.json) {
    fmt::print("{}\n", json_text(to_json(config), 2));
  } else {
    fmt::print("{}", to_yaml(config));
  }
}

}  // namespace

void add_config_command(CLI::App& app) {
  const auto args = std::make_shared<Args>();
  CLI::App* command = app.add_subcommand("config", "print the resolved config, or the reference of all keys");
  add_config_args(*command, args->config, false);
  CLI::Option* json = command->add_flag("--json", args->json, "print one JSON object");
  command->add_flag("--reference", args->reference, "print every key with default, values and meaning, as Markdown")->excludes(json);
  command->callback([args] { run(*args); });
}

}  // namespace hlat
