// Where things of a run lie that the launcher looks at.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "config/config.h"

namespace hlat {

std::filesystem::path make_launch_folder(const Config& config);           // RUN_DIR/launch; UsageError
std::vector<std::filesystem::path> locked_folders(const Config& config);  // that ranks hold: the run folder, checkpoints where elsewhere
// Of a step below this, where it is not 0; verified: of those that were found right when they were saved. 0: there is none.
int64_t newest_checkpoint(const Config& config, int64_t below, bool verified = false);

}  // namespace hlat
