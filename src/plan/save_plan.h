// What the checkpoints of a run take: bytes of each, of those on the disk at a time, and written over time; and whether an update waits for
// the copy of a rank's state.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "plan/fit.h"

namespace hlat {

struct SavePlan {
  bool saves = false;                          // anything at all; else all of this is 0
  uint64_t bytes = 0;                          // of the tensors of one checkpoint, by all ranks
  uint64_t kept_bytes = 0;                     // on the disk at most, but for those that are kept for good
  uint64_t weights_bytes = 0;                  // of one bf16 copy of the weights; 0: none are saved
  std::optional<double> bytes_per_day;         // where saves come by time
  std::optional<double> bytes_per_1000_steps;  // where they come by steps alone
  uint64_t rank_bytes = 0;                     // of one rank's state
  uint64_t staging_bytes = 0;                  // that it is copied to
  int64_t keep = 0, keep_every = 0, weights_every_tokens = 0;

  // Copied only when as much of the state before was written: the update waits for that.
  uint64_t waits_for_bytes() const { return rank_bytes > staging_bytes ? rank_bytes - staging_bytes : 0; }
};

SavePlan save_plan(const Config& config, const RankPlan& plan, const Fit& fit);
std::string save_text(const SavePlan& plan);
nlohmann::ordered_json save_json(const SavePlan& plan);

}  // namespace hlat
