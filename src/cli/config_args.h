// The `--config FILE [section.key=value ...]` that train, plan, bench and config share.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "config/load.h"

namespace hlat {

struct ConfigArgs {
  std::string path;                    // empty: defaults
  std::vector<std::string> overrides;  // section.key=value
  LoadedConfig load() const;           // with model.vocab known
};

// Adds the options and the list of keys to a command. `args` must live until the command has run.
void add_config_args(CLI::App& command, ConfigArgs& args, bool required = true);

}  // namespace hlat
