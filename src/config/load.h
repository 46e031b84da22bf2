// From files and words to a Config. Order of precedence: defaults, the preset, the file, the command line (later words win).
// All problems are found before anything is reported, each with the place to change.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "config/config.h"
#include "config/origin.h"

namespace hlat {

struct LoadedConfig {
  Config config;
  std::map<std::string, Origin> origins;  // by key; a key that is not here has its default
};

// An empty path means defaults only. Throws UsageError with one problem per line.
LoadedConfig load_config(const std::string& path, const std::vector<std::string>& overrides = {});

// The same with entries that come from somewhere else than the command line, and win over the file as its words do: messages name their
// origins, whose kind is `command_line` with the name of a file.
LoadedConfig load_config_with(const std::string& path, std::vector<Entry> entries);

// The same with a config instead of a file: that of a checkpoint, say. A preset named now takes the place of all of its model.
// Rules between keys are not held where one of `open` is among them: its value is not known yet.
LoadedConfig override_config(Config base, const std::vector<std::string>& overrides, std::set<std::string> open = {});

}  // namespace hlat
