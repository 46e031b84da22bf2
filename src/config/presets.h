// Known model shapes. A preset gives all values of the model section; keys that are written then override single ones.
#pragma once

#include <string_view>
#include <vector>

#include "config/config.h"

namespace hlat {

std::vector<std::string_view> preset_names();
const ModelConfig* find_preset(std::string_view name);  // null when there is none of that name

}  // namespace hlat
