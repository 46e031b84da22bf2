// A rank that starts from checkpoints as the trainer's do, and checkpoints of one run for it.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "backend/cpu/cpu_backend.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/state_pieces.h"
#include "comm/self_comm.h"
#include "runtime/assembly.h"
#include "runtime/load_start.h"
#include "support/layout_run.h"
#include "support/saved_run.h"
#include "train/state_records.h"

namespace hlat::test {

inline constexpr int64_t kOlder = 2, kNewest = 4;

inline Config one_layer() {
  Layout layout{.layers = 1};
  layout.precision = PrecisionKind::mixed;
  Config c = layout.config();
  c.optim.lr = 1e-3;
  return c;
}

// A rank that starts as the trainer's do, as often as it is asked.
class Starter {
 public:
  explicit Starter(const std::filesystem::path& parent)
      : config_(one_layer()), assembly_(config_, backend_, world_, 1), model_(assembly_.build()) {
    config_.checkpoint.dir = parent;
  }

  Config& config() { return config_; }

  struct Started {
    int64_t step = 0;
    std::string state, position;
    bool operator==(const Started&) const = default;
  };
  // What the run is about to do, and the model there.
  std::pair<StartPoint, TrainState> load() {
    StartPoint from = find_start(config_, false, world_);
    TrainState state = load_start(from, config_, model_, world_, 2, [](const std::string&, bool) {});
    return {std::move(from), std::move(state)};
  }
  Started start() {
    for (const Bucket& b : params().buckets())
      for (const Tensor& t : {b.weight, b.m, b.v, b.master})
        if (t.defined()) model_.ops().fill(t, 77);
    const TrainState state = load().second;
    Started started{.step = state.step, .state = {}, .position = state.data ? state.data->save() : ""};
    for (const StatePiece& p : state_pieces(params(), 0, 1, Rows::all))
      started.state.append(static_cast<const char*>(p.tensor.data), p.tensor.bytes());
    return started;
  }

 private:
  const ParamStore& params() { return model_.executor().params(); }

  Config config_;
  SelfComm world_;
  CpuBackend backend_{{.threads = 1, .isa = "auto"}};
  Assembly assembly_;
  PlacedModel& model_;
};

// Two checkpoints of one run, each of four files: with tensor parallelism pieces are columns of matrices, with ZeRO-1 parts of them.
inline void save_two(const std::filesystem::path& parent) {
  Config config = one_layer();
  config.parallel.tp = 2, config.parallel.dp = 2, config.parallel.zero1 = true;
  for (const int64_t step : {kOlder, kNewest}) {
    const TrainedPart saved = run_and_save(config, parent, step, 0);
    CheckpointIndex index = read_index(checkpoint_path(parent, step));
    index.records.clear();
    join_records(index, {own_record(saved.begin.data, "")});
    std::ofstream(checkpoint_path(parent, step) / kIndexName, std::ios::binary | std::ios::trunc) << index.save();
  }
}

}  // namespace hlat::test
