// Checks of a whole Config: every field within its limits, and the rules between fields. Returns all that is wrong.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "config/config.h"

namespace hlat {

// keys[0] is the field at fault, the others are what it disagrees with. The message follows "key = value: ".
struct Violation {
  std::vector<std::string> keys;
  std::string message;
};

// Rules that involve a key of `skip` are left out: its value could not be read and says nothing.
std::vector<Violation> validate(const Config& config, std::set<std::string> skip = {});

}  // namespace hlat
