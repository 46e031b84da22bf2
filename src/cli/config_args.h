// The `--config FILE [section.key=value ...]` that train, plan, bench, config and data inspect share.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "config/load.h"

namespace hlat {

struct ConfigArgs {
  std::string path;                    // empty: defaults
  std::vector<std::string> overrides;  // section.key=value
  LoadedConfig load() const;           // with model.vocab known
};

// Adds the options to a command, and the end of its help: an example and where the keys are listed. `args` must live until the command has
// run.
void add_config_args(CLI::App& command, ConfigArgs& args, const std::string& example, bool required = true);

}  // namespace hlat
