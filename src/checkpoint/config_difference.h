// The keys in which two configs differ, as checkpoints keep them: JSON objects of sections.
#pragma once

#include <string>
#include <vector>

namespace hlat {

struct ConfigDifference {
  std::string key;   // "model.layers", "data.sources"
  std::string a, b;  // values as JSON; empty: the key is not there
  bool operator==(const ConfigDifference&) const = default;
};

std::vector<ConfigDifference> config_differences(const std::string& a, const std::string& b);

}  // namespace hlat
