// What ranks have to tell each other, as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "comm/comm.h"

namespace hlat {

// Every rank's value, in rank order, on all ranks. Collective.
std::vector<nlohmann::json> gather_json(Comm& world, const nlohmann::json& own);

}  // namespace hlat
