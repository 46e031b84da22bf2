#include "checkpoint/prune.h"

#include <algorithm>

#include "checkpoint/checkpoint_folder.h"

namespace hlat {

PrunePlan plan_prune(const std::filesystem::path& checkpoints, int64_t keep, int64_t keep_every) {
  const std::vector<ListedCheckpoint> list = list_checkpoints(checkpoints);
  std::vector<int64_t> whole;
  for (const ListedCheckpoint& c : list)
    if (c.whole()) whole.push_back(c.step);
  const std::vector<int64_t> gone = beyond_retention(whole, keep, keep_every);
  PrunePlan plan{.folder = checkpoints};
  for (const ListedCheckpoint& c : list) {
    const bool goes = std::binary_search(gone.begin(), gone.end(), c.step);
    (c.leftover ? plan.leftovers : !c.whole() ? plan.damaged : goes ? plan.removed : plan.kept).push_back(c);
  }
  return plan;
}

void prune(const PrunePlan& plan) {
  for (const ListedCheckpoint& c : plan.removed) remove_checkpoint(c.folder);
  if (!plan.leftovers.empty()) remove_leftovers(plan.folder);
}

}  // namespace hlat
