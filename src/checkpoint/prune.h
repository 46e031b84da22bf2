// Which checkpoints of a folder go by a rule of retention. What is not whole does not count as kept and is left for a person to look at:
// damaged checkpoints must never push out good ones.
#pragma once

#include <filesystem>
#include <vector>

#include "checkpoint/listing.h"

namespace hlat {

struct PrunePlan {
  std::filesystem::path folder;
  std::vector<ListedCheckpoint> removed = {}, kept = {}, damaged = {}, leftovers = {};  // leftovers go, damaged ones stay
};

PrunePlan plan_prune(const std::filesystem::path& checkpoints, int64_t keep, int64_t keep_every);
void prune(const PrunePlan& plan);  // the oldest first. Nobody may be writing there. FaultError.

}  // namespace hlat
