#include "cli/config_args.h"

#include "config/print.h"
#include "data/resolve_vocab.h"

namespace hlat {

LoadedConfig ConfigArgs::load() const {
  LoadedConfig loaded = load_config(path, overrides);
  resolve_vocab(loaded.config);
  return loaded;
}

void add_config_args(CLI::App& command, ConfigArgs& args, bool required) {
  CLI::Option* file = command.add_option("--config", args.path, "the config file, a short difference from the defaults");
  file->type_name("FILE")->required(required);
  // Inside, no path means defaults; a variable that a script left unset must not.
  file->check([](const std::string& path) { return std::string(path.empty() ? "names no file" : ""); }, "");
  command.add_option("overrides", args.overrides, "section.key=value: wins over the file")->type_name("KEY=VALUE");
  command.footer(config_help);
}

}  // namespace hlat
