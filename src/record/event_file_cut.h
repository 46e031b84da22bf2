// Event files of a run that goes on from an earlier step (record/tensorboard.h has their format).
#pragma once

#include <cstdint>
#include <filesystem>

#include "record/previous_run.h"

namespace hlat {

// Records past `step` go to previous_N under the file's name, behind a version record of their own, so that they are an event file there;
// a file that has none else is moved as it is. What is no record at the end of the file, left by a process that died, goes away. The copy
// is on disk before the file is cut.
void cut_event_file(const std::filesystem::path& file, int64_t step, PreviousRun& previous);

}  // namespace hlat
