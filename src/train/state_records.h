// The training state of a checkpoint besides its tensors, as records of its index:
//   data      {"position": text of a DataState}   where every lane stands, and with it the ledger; of all ranks, joined
//   kernels   the ranks' Backend::kernel_choices, merged (ops/kernel_choices.h)
//   loss      LossState (loss_policy.h): history of loss and gradient norm, skipped steps
//   alarms    AlarmState (alarm/alarm_state.h): what the rules remember
//   health    HealthRecord (checkpoint/health_record.h)
//   fp8       scales of FP8 products (fp8_record.h)
// Step and tokens are the index's own; the learning rate follows from step and config, random numbers from seed and step.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "alarm/alarm_state.h"
#include "checkpoint/index.h"
#include "data/data_state.h"
#include "train/loss_policy.h"

namespace hlat {

// What a rank knows of the data: the first one of those that read it all, the others where their lanes stand.
using OwnPosition = std::variant<std::monostate, DataState, RankLanes>;

// One rank's part. A rank that has nothing to add has an empty one.
std::string own_record(const OwnPosition& position, const std::string& kernels, const std::string& fp8 = {});
// On rank 0: the parts of all ranks become records of the index.
void join_records(CheckpointIndex& index, const std::vector<std::string>& own_records);

Record to_record(const LossState& state);
// An empty one where the checkpoint has none: of a version that kept none. DamagedCheckpoint where it cannot be read.
LossState saved_loss(const CheckpointIndex& index);

Record to_record(const AlarmState& state);
// As with the loss.
AlarmState saved_alarms(const CheckpointIndex& index);

// The position in the data, of all lanes. DamagedCheckpoint where the checkpoint has none, or a broken one.
DataState saved_position(const CheckpointIndex& index);
// For Backend::use_kernel_choices on this rank; empty: none were saved. DamagedCheckpoint where they cannot be read.
std::string saved_kernels(const CheckpointIndex& index, int rank);

// UsageError where a record was written by a newer program.
void check_version(const Record& record, int known);

}  // namespace hlat
