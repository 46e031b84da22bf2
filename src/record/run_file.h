// Files of a run folder about the run as a whole: plan.json, as `hlat plan --json` has it, and ledger.json, what was read when training
// ended. They say what is, not what happened: a later start of the run puts its own in their place.
#pragma once

#include <string>
#include <string_view>

#include "record/run_folder.h"

namespace hlat {

// In one piece. Where it cannot be stored the log says so, and the run goes on.
void put_run_file(RunFolder& folder, const std::string& name, std::string_view text);

}  // namespace hlat
