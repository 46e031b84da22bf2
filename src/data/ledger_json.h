// The ledger as an object, for ledger.json of a run folder.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "data/ledger.h"

namespace hlat {

// {"total": [lines], "segments": [{"from_step", "lines"}], ...}, keys as the members; epochs that are not known are null.
nlohmann::ordered_json ledger_json(const Ledger& ledger);

}  // namespace hlat
