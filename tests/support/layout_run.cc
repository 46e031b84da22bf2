#include "support/layout_run.h"

#include <gtest/gtest.h>

#include <cctype>
#include <mutex>

#include "backend/cpu/cpu_backend.h"
#include "comm/host_exchange.h"
#include "config/precision_row.h"
#include "support/host_memory.h"
#include "support/library_comm.h"
#include "support/precision_rows.h"
#include "support/thread_comm.h"
#include "support/whole_tensors.h"

namespace hlat {

Config layout_config() {
  Config c;
  c.model = {.preset = {}, .layers = 4, .hidden = 64, .heads = 8, .kv_heads = 2, .ffn = 84, .vocab = 101};
  c.model.init_std = 0.1;  // large enough for every path to matter
  c.train.seq_len = 23;
  c.train.global_batch = 8;
  c.train.micro_batch = 1;
  c.train.loss_chunk = 9;
  c.optim.lr = 1e-3;
  c.parallel.dp = 1;
  c.parallel.bucket_mb = 1;
  return c;
}

Config Layout::config() const {
  Config c = layout_config();
  c.model.kv_heads = kv;
  c.model.layers = layers;
  c.model.ffn = ffn;
  c.model.vocab = vocab;
  c.model.tied = tied;
  c.train.micro_batch = micro;
  c.train.precision = precision;
  c.precision = choices;
  fit_fp8(c);
  c.model.heads = heads;
  c.model.coalesced = coalesced;
  // Without a master a weight moves by whole steps of bf16: those of the norms, which start at one, are 0.004 and 0.008.
  if (!precision_of(c).master && precision != PrecisionKind::fp32) c.optim.lr = 8e-3;
  EXPECT_TRUE(parse_recompute(recompute, c.train.recompute));
  c.parallel.tp = tp;
  c.parallel.pp = pp;
  c.parallel.dp = dp;
  c.parallel.sequence = sp;
  c.parallel.zero1 = zero1;
  c.parallel.chunks = chunks;
  c.parallel.cuts = cuts;
  c.parallel.bucket_mb = bucket_mb;
  return c;
}

std::string Layout::name() const {
  std::string s = fmt::format("tp{}_pp{}_dp{}", tp, pp, dp);
  if (sp) s += "_sp";
  if (zero1) s += "_zero1";
  if (chunks > 1) s += fmt::format("_chunks{}", chunks);
  for (const int64_t cut : cuts) s += fmt::format("_cut{}", cut);
  if (std::string_view(recompute) != "none") s += fmt::format("_{}", std::string_view(recompute).substr(0, 5));
  if (kv != 2) s += fmt::format("_kv{}", kv);
  if (ffn != 84) s += fmt::format("_ffn{}", ffn);
  if (heads != 8) s += fmt::format("_heads{}", heads);
  if (layers != 4) s += fmt::format("_layers{}", layers);
  if (micro != 1) s += fmt::format("_micro{}", micro);
  if (vocab != 101) s += fmt::format("_vocab{}", vocab);
  if (tied) s += "_tied";
  if (precision != PrecisionKind::fp32) s += fmt::format("_{}", name_of(precision));
  for (const char x : precision_words(config()).substr(name_of(precision).size())) s += std::isalnum(x) ? x : '_';
  if (!coalesced) s += "_separate";
  if (bucket_mb != 1) s += fmt::format("_bucket{}", bucket_mb);
  return s;
}

LayoutRows::LayoutRows(const Config& c, const Mesh& mesh)
    : vocab_(c.model.vocab),
      first_(part_of(c.train.global_batch, mesh.coord().dp, mesh.shape().dp).begin),
      sources_(std::max<int64_t>(1, static_cast<int64_t>(c.data.sources.size()))) {}

void LayoutRows::read(int64_t first, Batch& b) {
  for (int64_t r = 0; r < b.rows; ++r) {
    const int64_t row = first_ + first + r;
    RandomStream s({.seed = 5, .stream = hash_name("batch"), .purpose = Noise::data, .step = static_cast<uint32_t>(step * 1000 + row)});
    for (int64_t t = 0; t < b.seq_len; ++t) {
      b.inputs[static_cast<size_t>(r * b.seq_len + t)] = static_cast<int32_t>(s.below(static_cast<uint64_t>(vocab_)));
      b.targets[static_cast<size_t>(r * b.seq_len + t)] = static_cast<int32_t>(s.below(static_cast<uint64_t>(vocab_)));
    }
  }
}

namespace {

// Puts this rank's slice of every parameter into its place; what another rank has put there must be the same bits, but where ranks round
// with noise of their own.
void collect(const ParamStore& params, Device& device, LayoutResult& result) {
  for (ParamId id = 0; id < params.size(); ++id) {
    const ParamSpec& spec = params.spec(id);
    std::vector<double>& whole = result.weights[spec.name];
    whole.resize(static_cast<size_t>(spec.slice.global.numel()), kUnset);
    std::vector<std::byte> bytes(params.weight(id).bytes());
    device.download(bytes.data(), params.weight(id));
    const Tensor w = Tensor::contiguous(bytes.data(), params.weight(id).dtype, params.weight(id).shape);
    for (const FlatRun& run : spec.slice.flat_runs(0, w.numel()))
      for (int64_t e = run.begin; e < run.end; ++e) {
        double& place = whole[static_cast<size_t>(run.map.global(e - run.begin))];
        const double value = load_f64(w, e);
        if (place != kUnset && params.precision().keyed_noise) {
          EXPECT_EQ(place, value) << spec.name << ": replicas differ";
        }
        place = value;
      }
  }
}

// Elements of the tensor that an update unit has of each parameter, from those ranks that count them in global norms.
template <class TensorOf>
void collect_units(const ParamStore& params, Device& device, GlobalTensors& result, const TensorOf& tensor_of) {
  for (const UpdateUnit& u : params.units()) {
    if (!u.counted) continue;
    std::vector<double>& whole = result[params.spec(u.param).name];
    whole.resize(static_cast<size_t>(params.spec(u.param).slice.global.numel()), kUnset);
    Tensor t = tensor_of(u.tensors);
    std::vector<std::byte> bytes(t.bytes());
    device.download(bytes.data(), t);
    t.data = bytes.data();
    for (int64_t e = 0; e < t.numel(); ++e) whole[static_cast<size_t>(u.map.global(e))] = load_f64(t, e);
  }
}

Tensor updated_tensor(const AdamwTensors& t) { return t.master.defined() ? t.master : t.weight; }

}  // namespace

void train_rank(int64_t steps, const RankPlan& plan, PlacedModel& model, const AfterStep& after, LayoutResult& result, std::mutex& mutex) {
  Executor& executor = model.executor();
  const int rank = rank_of(model.mesh().coord(), model.mesh().shape());
  executor.init_weights();
  TrainStep train(executor);
  LayoutRows rows(executor.config(), model.mesh());
  std::vector<StepResult> mine;
  const auto add_to = [&](GlobalTensors& tensors, const auto& tensor_of) {
    const std::lock_guard lock(mutex);
    collect_units(executor.params(), model.device(), tensors, tensor_of);
  };
  add_to(result.initial, updated_tensor);
  for (rows.step = 1; rows.step <= steps; ++rows.step) {
    mine.push_back(train.run(rows.step, executor.config().optim.lr, executor.reads_batches() ? &rows : nullptr));
    if (rows.step == 1) add_to(result.gradients, [](const AdamwTensors& t) { return t.grad; });
    if (after) after(train, rows.step);
  }
  add_to(result.masters, updated_tensor);
  const std::lock_guard lock(mutex);
  EXPECT_NO_THROW(plan.check_used(model.high_water(), model.mesh())) << "rank " << rank;
  if (result.steps.empty()) result.steps = mine;
  for (size_t i = 0; i < mine.size(); ++i) {
    EXPECT_EQ(mine[i].loss, result.steps[i].loss) << "rank " << rank;
    EXPECT_EQ(mine[i].grad_norm, result.steps[i].grad_norm) << "rank " << rank;
    // A replica tells the norm of its own weights.
    if (executor.params().precision().keyed_noise) {
      EXPECT_EQ(mine[i].param_norm, result.steps[i].param_norm) << "rank " << rank;
    }
  }
  collect(executor.params(), model.device(), result);
}

LayoutResult run_layout(const Config& config, int64_t steps, const AfterStep& after, const WrapComm& wrap,
                        const MakeBackend& make_backend) {
  LayoutResult result;
  std::mutex mutex;
  run_thread_ranks(mesh_shape(config.parallel).ranks(), [&](Comm& world) {
    const std::unique_ptr<Backend> backend =
        make_backend ? make_backend() : std::make_unique<CpuBackend>(CpuOptions{.threads = 1, .isa = "auto"});
    Assembly assembly(config, *backend, world, world.size());
    PlacedModel& model =
        assembly.build([&](std::unique_ptr<Comm> comm) { return wrap ? wrap(std::move(comm), world.rank()) : std::move(comm); });
    train_rank(steps, assembly.plan(), model, after, result, mutex);
  });
  for (const GlobalTensors* tensors : {&result.weights, &result.initial, &result.masters, &result.gradients}) expect_whole(*tensors);
  return result;
}

LayoutResult run_layout_with_library_sums(const Config& config, int64_t steps, const AfterStep& after) {
  LayoutResult result;
  std::mutex mutex;
  run_thread_ranks(mesh_shape(config.parallel).ranks(), [&](Comm& world) {
    CpuBackend backend({.threads = 1, .isa = "auto"});
    Region measuring;
    const std::unique_ptr<Ops> scratch_model = backend.make_ops(measuring);
    const RankPlan plan = dry_run(config, {.scratch_model = scratch_model.get(), .transport = Transport::nccl}, world.rank());
    const Mesh mesh(config, world, [&](std::unique_ptr<Comm> comm) -> std::unique_ptr<Comm> {
      const int group = all_gather_values(*comm, world.rank())[0];
      return std::make_unique<LibraryComm>(std::move(comm), group);
    });
    PlacedModel model(config, precision_of(config), mesh, backend, &plan.memory, ParamUse::training);
    train_rank(steps, plan, model, after, result, mutex);
  });
  return result;
}

}  // namespace hlat
