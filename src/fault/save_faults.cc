#include "fault/save_faults.h"

#include <algorithm>
#include <cerrno>

#include "base/file.h"
#include "checkpoint/checkpoint_folder.h"
#include "fault/damage.h"

namespace hlat::fault {

bool waits_for_a_save(FaultKind kind) { return kind == FaultKind::disk_full || kind == FaultKind::corrupt; }

void SaveFaults::add(SaveFault fault) {
  const std::lock_guard lock(mutex_);
  faults_.push_back(std::move(fault));
}

std::optional<SaveFault> SaveFaults::take(FaultKind kind, int64_t step) {
  const std::lock_guard lock(mutex_);
  for (SaveFault& f : faults_) {
    if (f.spec.kind != kind || f.left == 0 || f.spec.step > step) continue;
    --f.left;
    return f;
  }
  return std::nullopt;
}

void SaveFaults::before_write(int64_t step, const Tell& tell) {
  const std::optional<SaveFault> fault = take(FaultKind::disk_full, step);
  if (!fault) return;
  tell(fault->spec, fault->random, "");
  fail_storage(ENOSPC, "fault.inject: cannot write a file of this save");
}

bool SaveFaults::corrupts(const SaveOutcome& outcome, const Tell& tell) {
  if (!outcome.problem.empty() || outcome.content != CheckpointContent::training) return false;
  {
    const std::lock_guard lock(mutex_);
    const auto corrupt = [](const SaveFault& f) { return f.spec.kind == FaultKind::corrupt; };
    if (std::none_of(faults_.begin(), faults_.end(), corrupt)) return false;
  }
  // Without an older checkpoint behind it the run could not go on.
  if (checkpoint_steps(outcome.folder.parent_path()).size() < 2) return false;
  const std::optional<SaveFault> fault = take(FaultKind::corrupt, outcome.step);
  if (!fault) return false;
  tell(fault->spec, fault->random, fmt::format(", in the checkpoint of step {}", outcome.step));
  change_bytes(outcome.folder);
  return true;
}

}  // namespace hlat::fault
