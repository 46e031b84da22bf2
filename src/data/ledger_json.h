// The ledger as an object, for ledger.json of a run folder.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "data/ledger.h"

namespace hlat {

// {"step", "total": [lines], "segments": [{"from_step", "lines"}], ...}, keys as the members; epochs that are not known are null. step: the
// last one that is counted.
nlohmann::ordered_json ledger_json(const Ledger& ledger, int64_t step);

}  // namespace hlat
