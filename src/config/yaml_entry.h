// A value of a YAML file as an Entry has it: its kind, and its text as messages show it and the loader reads it.
#pragma once

#include <yaml-cpp/yaml.h>

#include <string>

#include "config/origin.h"

namespace hlat {

Entry::Kind entry_kind(const YAML::Node& node);
std::string entry_text(const YAML::Node& node);  // "4", "[a, b]", "{a: 1}"
std::string kind_words(const YAML::Node& node);  // of what is no scalar: "(a list)"

}  // namespace hlat
