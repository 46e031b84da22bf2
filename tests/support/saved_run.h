// Trains a tiny model on a mesh of ranks that are threads, saves it on the way and goes on, or loads a checkpoint and goes on, and puts the
// state of all ranks together. Rows are read from a mixture of sources with stages, so there is a position in the data to be saved.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/load_state.h"
#include "config/config.h"
#include "data/data_state.h"
#include "train/train_step.h"

namespace hlat {

// Global tensors by kind and name, "moment1 layers.0.mlp.down", put together from the ranks' parts. Replicas must be equal, bit by bit.
// The weight of a layer whose products are FP8 is its master: what FP8 holds follows from that.
using GlobalState = std::map<std::string, std::vector<double>>;

// What a policy has of the state that another one saved: the rules of docs/checkpoints.md, independent of the code under test.
GlobalState converted(const GlobalState& saved, PrecisionKind to, LoadWhat what);
void expect_equal_state(const GlobalState& a, const GlobalState& b, const std::string& what);

// What a mesh holds between two steps.
struct Snapshot {
  GlobalState tensors;
  DataState data;
};

struct TrainedPart {
  Snapshot begin, end;            // before its first step and after its last
  std::vector<StepResult> steps;  // of rank 0; all ranks must agree
};

struct LoadedPart : TrainedPart {
  std::vector<std::string> conversions;
  uint64_t bytes_read = 0;  // by all ranks
};

// Trains from initial weights to `step`, and `more` steps while it saves to PARENT/step_N: the part since the save began.
TrainedPart run_and_save(const Config& config, const std::filesystem::path& parent, int64_t step, int64_t more,
                         CheckpointContent content = CheckpointContent::training);

// Loads a checkpoint and trains `more` steps. Before, memory is filled with NaN; after loading, the buckets' padding must be zero.
LoadedPart load_and_run(const Config& config, const std::filesystem::path& folder, int64_t more, LoadWhat what = LoadWhat::training);

// Loads on every rank, and returns what the mesh then holds; opens no data. What a rank throws is handed to `caught`, one at a time, with
// its number.
GlobalState load_on_ranks(const Config& config, const std::filesystem::path& folder, LoadWhat what = LoadWhat::training,
                          const std::function<void(int rank, const std::exception&)>& caught = {});

}  // namespace hlat
