// The configuration as text for people and machines, all from the field list.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "config/config.h"

namespace hlat {

// Every key; load_config reads it back to the identical Config. Steps that follow from another key are a comment.
std::string to_yaml(const Config& config);

// What a run leaves behind: the config as it was given, so that it can start on other ranks or machines again, and what `auto` stood for in
// this run in comments.
std::string run_record(const Config& given, const Config& resolved);

nlohmann::ordered_json to_json(const Config& config);

}  // namespace hlat
