#include "support/saved_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <mutex>
#include <nlohmann/json.hpp>

#include "backend/cpu/cpu_backend.h"
#include "base/bf16.h"
#include "checkpoint/saver.h"
#include "config/print.h"
#include "data/train_batches.h"
#include "runtime/assembly.h"
#include "support/host_memory.h"
#include "support/memory_source.h"
#include "support/thread_comm.h"
#include "support/whole_tensors.h"
#include "train/fp8_record.h"
#include "train/state_records.h"

namespace hlat {
namespace {

// Two sources whose shares change at steps 2 and 5.
struct StagedData {
  MemorySource web{"web", {.documents = 300}};
  MemorySource books{"books", {.documents = 100, .first_token = 1'000'000}};

  Mixture mixture() const {
    return {.sources = {&web, &books}, .names = {"web", "books"}, .segments = {{1, {1, 0}}, {2, {0.5, 0.5}}, {5, {0.25, 0.75}}}, .seed = 4};
  }
  static DataIdentity identity(const Config& c) {
    return {.tokenizer = 1, .eos = 2, .bos = -1, .seed = 4, .validation = 0, .lanes = c.train.global_batch, .seq_len = c.train.seq_len};
  }
};

// Rows of the data, with ids that the model's vocabulary has.
class FoldedRows : public BatchSource {
 public:
  FoldedRows(BatchSource& rows, int64_t vocab) : rows_(rows), vocab_(static_cast<int32_t>(vocab)) {}
  void read(int64_t first, Batch& b) override {
    rows_.read(first, b);
    for (std::vector<int32_t>* ids : {&b.inputs, &b.targets})
      for (int32_t& id : *ids) id %= vocab_;
  }

 private:
  BatchSource& rows_;
  int32_t vocab_;
};

// What the ranks of a mesh put together; under the mutex.
struct Shared {
  std::mutex mutex;
  DataState first;
  std::vector<RankLanes> others;

  void add(OwnPosition position) {
    if (auto* all = std::get_if<DataState>(&position)) first = std::move(*all);
    if (auto* lanes = std::get_if<RankLanes>(&position)) others.push_back(std::move(*lanes));
  }
};

class Rank {
 public:
  Rank(const Config& config, Comm& world)
      : config_(config),
        world_(world),
        assembly_(config, backend_, world, world.size()),
        model_(assembly_.build()),
        step_(model_.executor()) {}

  Executor& executor() { return model_.executor(); }
  const ParamStore& params() { return executor().params(); }
  const Mesh& mesh() const { return model_.mesh(); }
  Device& device() { return backend_.device(); }

  void start() { model_.executor().init_weights(); }
  void open_data(const std::optional<DataState>& from) {
    if (!model_.executor().reads_batches()) return;
    const Part own = part_of(config_.train.global_batch, mesh().coord().dp, mesh().shape().dp);
    batches_.emplace(StagedData::identity(config_), data_.mixture(), own, LoaderOptions{}, from);
  }

  void train(int64_t from, int64_t to, std::vector<StepResult>& results, std::mutex& mutex) {
    std::optional<FoldedRows> rows;
    if (batches_) rows.emplace(*batches_, config_.model.vocab);
    std::vector<StepResult> mine;
    for (int64_t s = from; s <= to; ++s) mine.push_back(step_.run(s, config_.optim.lr, rows ? &*rows : nullptr));
    const std::lock_guard lock(mutex);
    if (results.empty()) results = mine;
    for (size_t i = 0; i < mine.size(); ++i) EXPECT_EQ(mine[i].loss, results[i].loss) << "rank " << world_.rank();
  }

  // Collective: when it returns on a rank, all have added theirs.
  void snapshot(Snapshot& into, Shared& shared) {
    {
      const std::lock_guard lock(shared.mutex);
      add_tensors(into.tensors);
      shared.add(position());
    }
    world_.barrier();
    if (world_.rank() == 0) into.data = join(std::move(shared.first), std::exchange(shared.others, {}));
    world_.barrier();
  }

  // The save goes on overlapped with the steps that follow.
  void begin_save(const std::filesystem::path& parent, CheckpointIndex index) {
    const MeshCoord& c = mesh().coord();
    const int dp = mesh().shape().dp;
    saver_.emplace(params(), device(), c.dp, dp, world_.size() > 1 ? world_.split(0, world_.rank(), "save") : nullptr,
                   SaveOptions{.staging_bytes = Saver::state_bytes(params(), c.dp, dp)});
    step_.on_update([this](int bucket) { saver_->before_update(bucket); });
    SaveRequest request;
    request.parent = parent;
    request.content = index.content;
    request.index = std::move(index);
    request.own_record = own_record(position(), "", own_fp8(executor()));
    request.join_records = [](CheckpointIndex& joined, const std::vector<std::string>& own) { join_records(joined, own); };
    saver_->begin(std::move(request));
  }
  void end_save() {
    ASSERT_TRUE(saver_->wait(60));
    const std::optional<SaveOutcome> outcome = saver_->take_outcome();
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->problem, "");
  }

  // Of every copy, also those that count for nothing, and without any help from what is tested.
  void add_tensors(GlobalState& state) {
    for (ParamId id = 0; id < params().size(); ++id) {
      if (params().fp8(id)) continue;
      const int64_t n = params().weight(id).numel();
      for (const FlatRun& run : params().spec(id).slice.flat_runs(0, n))
        add(state, StateKind::weight, id, params().weight(id).viewed({n}).rows(run.begin, run.end), run.map);
    }
    for (const UpdateUnit& u : params().units()) {
      add(state, params().fp8(u.param) ? StateKind::weight : StateKind::master, u.param, u.tensors.master, u.map);
      add(state, StateKind::moment1, u.param, u.tensors.m, u.map);
      add(state, StateKind::moment2, u.param, u.tensors.v, u.map);
    }
  }

  // One rank of each replica knows it.
  OwnPosition position() {
    if (!batches_ || !mesh().first_stage()) return {};
    return mesh().coord().dp == 0 ? OwnPosition(batches_->position()) : OwnPosition(batches_->rank_lanes());
  }

  void poison() {
    for (const Bucket& b : params().buckets())
      for (const Tensor& t : {b.weight, b.grad, b.m, b.v, b.master})
        if (t.defined()) model_.ops().fill(t, std::numeric_limits<double>::quiet_NaN());
  }

  // A bucket's elements outside of parameters are zero.
  void check_padding() {
    for (const Bucket& b : params().buckets()) {
      std::vector<bool> taken(static_cast<size_t>(b.weight.numel()));
      for (const ParamId id : b.params) std::fill_n(taken.begin() + params().offset(id), params().spec(id).slice.local().numel(), true);
      const auto check = [&](const Tensor& t, int64_t first) {
        for (int64_t e = 0; t.defined() && e < t.numel(); ++e)
          if (!taken[static_cast<size_t>(first + e)]) {
            ASSERT_EQ(load_f64(t, e), 0) << "padding at " << first + e << " of " << taken.size();
          }
      };
      check(b.weight, 0);
      check(b.grad, 0);
      for (const Tensor& t : {b.master, b.m, b.v}) check(t, b.own.begin);
    }
  }

 private:
  void add(GlobalState& state, StateKind kind, ParamId id, const Tensor& t, const ElementMap& map) {
    if (!t.defined()) return;
    std::vector<double>& whole = state[fmt::format("{} {}", name_of(kind), params().spec(id).name)];
    whole.resize(static_cast<size_t>(params().spec(id).slice.global.numel()), kUnset);
    int64_t differ = 0;
    for (int64_t e = 0; e < t.numel(); ++e) {
      double& place = whole[static_cast<size_t>(map.global(e))];
      const double value = load_f64(t, e);
      differ += place != kUnset && !(place == value);
      place = value;
    }
    EXPECT_EQ(differ, 0) << name_of(kind) << " of " << params().spec(id).name << ": replicas differ, rank " << world_.rank();
  }

  Config config_;
  Comm& world_;
  CpuBackend backend_{{.threads = 1, .isa = "auto"}};
  Assembly assembly_;
  PlacedModel& model_;
  TrainStep step_;
  StagedData data_;
  std::optional<TrainBatches> batches_;
  std::optional<Saver> saver_;
};

std::vector<double> rounded(std::vector<double> values) {
  for (double& v : values) v = to_float(to_bf16(static_cast<float>(v)));
  return values;
}

// What a checkpoint of the run has in its index besides tensors, files and records.
CheckpointIndex saved_words(const Config& config, int64_t step) {
  CheckpointIndex index;
  index.run = "tiny-run";
  index.hlat = "test";
  index.created = "2026-01-01T00:00:00Z";
  index.step = step;
  index.tokens = step * config.train.global_batch * config.train.seq_len;
  index.config = to_json(config).dump();
  return index;
}

int ranks_of(const Config& config) { return mesh_shape(config.parallel).ranks(); }

// Of the models of these tests every dimension that FP8 must divide is a multiple of 16.
bool linear(const std::string& name) {
  return std::ranges::any_of(std::array{".qkv", ".output", ".gate_up", ".down"},
                             [&](const char* end) { return name.starts_with("layers.") && name.ends_with(end); });
}

}  // namespace

GlobalState converted(const GlobalState& saved, PrecisionKind to, LoadWhat what) {
  GlobalState out;
  const Precision p = precision_of(to);
  for (const auto& [key, values] : saved) {
    const std::string kind = key.substr(0, key.find(' ')), name = key.substr(key.find(' ') + 1);
    if (kind == "weight") {
      const auto master = saved.find("master " + name);
      const std::vector<double>& finest = master != saved.end() ? master->second : values;
      const bool narrow = p.fp8 && linear(name);
      out[key] = p.weight == DType::f32 || (narrow && p.master) ? finest : rounded(values);
      if (p.master && !narrow) out["master " + name] = finest;
    } else if (kind != "master") {
      out[key] = what == LoadWhat::weights ? std::vector<double>(values.size(), 0.0) : p.moment == DType::bf16 ? rounded(values) : values;
    }
  }
  return out;
}

void expect_equal_state(const GlobalState& a, const GlobalState& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (const auto& [key, values] : b) EXPECT_TRUE(a.contains(key) && a.at(key) == values) << what << ": " << key;
}

TrainedPart run_and_save(const Config& config, const std::filesystem::path& parent, int64_t step, int64_t more, CheckpointContent content) {
  TrainedPart result;
  Shared shared;
  std::vector<StepResult> before;
  run_thread_ranks(ranks_of(config), [&](Comm& world) {
    Rank rank(config, world);
    rank.start();
    rank.open_data({});
    rank.train(1, step, before, shared.mutex);
    rank.snapshot(result.begin, shared);
    CheckpointIndex index = saved_words(config, step);
    index.content = content;
    rank.begin_save(parent, std::move(index));
    rank.train(step + 1, step + more, result.steps, shared.mutex);
    rank.end_save();
    rank.snapshot(result.end, shared);
  });
  expect_whole(result.begin.tensors);
  return result;
}

LoadedPart load_and_run(const Config& config, const std::filesystem::path& folder, int64_t more, LoadWhat what) {
  LoadedPart result;
  Shared shared;
  run_thread_ranks(ranks_of(config), [&](Comm& world) {
    Rank rank(config, world);
    rank.poison();
    CheckpointReader reader(folder);
    const LoadResult loaded = load_state(reader, rank.params(), rank.mesh(), rank.device(), what, 2);
    restore_fp8(what == LoadWhat::training ? saved_fp8(reader.index(), config) : std::nullopt, rank.executor());
    rank.check_padding();
    const int64_t step = what == LoadWhat::training ? reader.index().step : 0;
    rank.open_data(step > 0 ? std::optional(saved_position(reader.index())) : std::nullopt);
    rank.snapshot(result.begin, shared);
    {
      const std::lock_guard lock(shared.mutex);
      result.conversions = loaded.conversions;
      result.bytes_read += loaded.bytes_read;
    }
    rank.train(step + 1, step + more, result.steps, shared.mutex);
    rank.snapshot(result.end, shared);
  });
  expect_whole(result.begin.tensors);
  return result;
}

GlobalState load_on_ranks(const Config& config, const std::filesystem::path& folder, LoadWhat what,
                          const std::function<void(int rank, const std::exception&)>& caught) {
  GlobalState state;
  std::mutex mutex;
  run_thread_ranks(ranks_of(config), [&](Comm& world) {
    Rank rank(config, world);
    CheckpointReader reader(folder);
    try {
      load_state(reader, rank.params(), rank.mesh(), rank.device(), what, 2);
      const std::lock_guard lock(mutex);
      rank.add_tensors(state);
    } catch (const std::exception& e) {
      if (!caught) throw;
      const std::lock_guard lock(mutex);
      caught(world.rank(), e);
    }
    world.barrier();
  });
  return state;
}

}  // namespace hlat
