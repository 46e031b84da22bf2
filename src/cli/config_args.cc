#include "cli/config_args.h"

#include "data/resolve_vocab.h"

namespace hlat {

LoadedConfig ConfigArgs::load() const {
  LoadedConfig loaded = load_config(path, overrides);
  resolve_vocab(loaded.config);
  return loaded;
}

void add_config_args(CLI::App& command, ConfigArgs& args, const std::string& example, bool required) {
  CLI::Option* file = command.add_option("--config", args.path, "a YAML file with the keys that differ from the defaults");
  file->type_name("FILE")->required(required);
  // Inside, no path means defaults; a variable that a script left unset must not.
  file->check([](const std::string& path) { return std::string(path.empty() ? "names no file" : ""); }, "");
  command.add_option("overrides", args.overrides, "keys of the config, such as train.steps=10; they win over the file")
      ->type_name("SECTION.KEY=VALUE");
  show_example(command, example + "\nKeys: hlat config --keys [SECTION]");
}

}  // namespace hlat
