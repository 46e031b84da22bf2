// Reads all of a checkpoint and names everything that is not what was saved.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/for_all.h"

namespace hlat {

// One line for each file or piece that is damaged, in the order of the files; none: the checkpoint is whole. FaultError when the disk
// fails.
std::vector<std::string> find_damage(CheckpointReader& reader, int threads, const BytesDone& done = {});

}  // namespace hlat
