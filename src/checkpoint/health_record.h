// What a checkpoint says about the health of its state, the record `health` of its index. {"checked": step, "passed": step}
#pragma once

#include <cstdint>
#include <optional>

#include "checkpoint/index.h"

namespace hlat {

struct HealthRecord {
  int64_t checked = 0;  // the step of the checkpoint where its replicas were compared at the save and found equal, or a rank without
                        // replicas had finite numbers; 0: nothing was compared
  int64_t passed = 0;   // the latest step after which replicas were compared; 0: none
  bool operator==(const HealthRecord&) const = default;
};

Record to_record(const HealthRecord& health);
std::optional<HealthRecord> health_of(const CheckpointIndex& index);  // none: it does not say
bool is_verified(const CheckpointIndex& index);                       // its own state was checked

}  // namespace hlat
