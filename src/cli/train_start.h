// What a run does between its plan and its first step: it looks whether the data is that of the checkpoint, takes the run folder, loads,
// and prepares its saves. In this order: nothing is moved or cut before everything that a user must change has been told.
#pragma once

#include <memory>

#include "checkpoint/saver.h"
#include "cli/run_guard.h"
#include "data/dataset.h"
#include "runtime/start_point.h"
#include "train/trainer.h"

namespace hlat {

// On ranks that read batches (`data` is null on others). UsageError: they are not those that the saved position was made with.
void check_data(const StartPoint& from, const Dataset* data);

// Before any memory is taken. Rank 0 has the folder, the others only learn which it is. Collective. FaultError: checkpoints came or went
// between the search for them and the lease.
RunFolder* open_folder(const Config& given, const Config& config, const StartPoint& from, bool fresh, const Session& session,
                       RunGuard& guard);

// Where the run starts, with the model there. Collective.
TrainState start_run(StartPoint& from, const Config& config, PlacedModel& model, const Session& session, int threads, RunFolder* folder);

// Saves of a run; none where its config asks for none. Collective.
std::unique_ptr<Saver> make_saver(const Config& config, size_t staging, const StartPoint& from, Backend& backend, const Session& session,
                                  RunGuard& guard, TrainSetup& setup);

}  // namespace hlat
