// Files of a run folder about the run as a whole: plan.json, as `hlat plan --json` has it, and ledger.json, what was read up to the step
// that it names. They say what is, not what happened: a later one takes their place, of this process or of a later start of the run.
#pragma once

#include <string>
#include <string_view>

#include "record/run_folder.h"

namespace hlat {

// In one piece. Where it cannot be stored the log says so, and the run goes on.
void put_run_file(RunFolder& folder, const std::string& name, std::string_view text);

}  // namespace hlat
