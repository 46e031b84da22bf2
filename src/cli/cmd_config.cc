// hlat config: the resolved configuration, and the reference of all keys.
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "base/json_text.h"
#include "cli/commands.h"
#include "cli/config_args.h"
#include "cli/config_warnings.h"
#include "cli/print.h"
#include "config/print.h"
#include "config/reference.h"

namespace hlat {
namespace {

struct PrintConfigArgs {
  ConfigArgs config;
  bool json = false;
  bool reference = false;
  std::optional<std::string> keys;  // a section, a key, or "" for all
};

void run_print_config(const PrintConfigArgs& args) {
  if (args.reference) {
    print_out(config_reference());
    return;
  }
  if (args.keys) {
    print_out(config_keys(*args.keys));
    return;
  }
  const Config config = args.config.load().config;
  for (const std::string& text : config_warnings(config)) print_err(fmt::format("hlat: warning: {}\n", text));
  if (args.json) {
    print_out(fmt::format("{}\n", json_text(to_json(config), 2)));
  } else {
    print_out(to_yaml(config));
  }
}

}  // namespace

void add_config_command(CLI::App& app) {
  const auto args = std::make_shared<PrintConfigArgs>();
  CLI::App* command = app.add_subcommand("config", "print the resolved config, or the reference of all keys");
  add_config_args(*command, args->config, "hlat config --config configs/nano.yaml train.steps=100", false);
  CLI::Option* json = command->add_flag("--json", args->json, "print one JSON object");
  CLI::Option* reference =
      command->add_flag("--reference", args->reference, "print every key with default, values and meaning, as Markdown");
  reference->excludes(json);
  command->add_option("--keys", args->keys, "list the keys with default and meaning: of a section, one key, or all")
      ->expected(0, 1)
      ->excludes(json)
      ->excludes(reference)
      ->type_name("[SECTION[.KEY]]");
  command->callback([args] { run_print_config(*args); });
}

}  // namespace hlat
