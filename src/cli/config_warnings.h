// What is allowed in a config but seldom meant. train, plan, config and data inspect show the same list.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace hlat {

std::vector<std::string> config_warnings(const Config& config);

}  // namespace hlat
