// Brings the model to where a run starts: initial weights, those of a checkpoint, or all of its state. A checkpoint that turns out to be
// damaged is told, and the one before it is taken.
#pragma once

#include <functional>
#include <string>

#include "model/placed_model.h"
#include "runtime/start_point.h"
#include "train/trainer.h"

namespace hlat {

// Tells rank 0's log and terminal.
using SayStart = std::function<void(const std::string& text, bool warning)>;

// The state of training that the model now has. `start` then has as its first candidate and index what was loaded, and among `damaged`
// what was not. Collective over `world`. UsageError, FaultError, or DamagedCheckpoint when nothing whole is left, on all ranks.
TrainState load_start(StartPoint& start, const Config& config, PlacedModel& model, Comm& world, int threads, const SayStart& say);

// After it, on rank 0, whose run folder it is: checkpoints that came later than the step the run goes on from would be taken for its own.
// Damaged ones become step_N.damaged (then step_N.damaged_2 and so on), those of a run that went back are moved to a folder of their own.
// Lines for the log.
std::vector<std::string> set_later_aside(const StartPoint& start, const Config& config);

}  // namespace hlat
