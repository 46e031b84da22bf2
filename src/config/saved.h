// A config that was saved with a run: read back from the JSON that to_json wrote, by this version or another one, and compared with the
// config of today, key by key over the field list.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "config/config.h"

namespace hlat {

struct SavedConfig {
  Config config;                     // keys that are not in the JSON have their defaults
  std::vector<std::string> unknown;  // "section.key = value": keys of another version, or values that a key cannot have here
};

// Never throws over what a version of the future may have written; UsageError when the JSON is no config at all.
SavedConfig config_from_json(const nlohmann::ordered_json& json);

struct KeyChange {
  std::string key, was, is;  // values as text, as a config file has them
  std::string str() const;   // "parallel.tp 2 -> 4"
};

// Keys whose values differ, in the order of the field list. Items that only one of the configs has are told by their list:
// "data.sources [1 item] -> [2 items]".
std::vector<KeyChange> config_changes(const Config& saved, const Config& now);

}  // namespace hlat
