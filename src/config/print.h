// The configuration as text for people and machines, all from the field list.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "config/config.h"

namespace hlat {

std::string to_yaml(const Config& config);  // every key; load_config reads it back to the identical Config
nlohmann::ordered_json to_json(const Config& config);

std::string config_reference();  // Markdown: every key with default, values and meaning; docs/config.md is this text
std::string config_help();       // the same, short, for --help

}  // namespace hlat
