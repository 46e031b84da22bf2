// Room on the disk for the checkpoints of the config's run, and memory that the ranks of a host may still take.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "burnin/check_run.h"

namespace hlat {

struct SpaceNeeds {
  uint64_t save = 0;  // bytes of one checkpoint
  uint64_t kept = 0;  // of all that are on the disk at a time
};
SpaceNeeds space_needs(const Config& config);

// What there is to say of so much free space; nothing: it is enough. Words, and whether not even one checkpoint fits.
struct SpaceVerdict {
  std::string words;
  Severity severity = Severity::warning;
};
std::optional<SpaceVerdict> judge_space(const std::string& folder, uint64_t free, const SpaceNeeds& needs);

PartReport check_space(const CheckRun& run);

}  // namespace hlat
