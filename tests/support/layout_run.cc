#include "support/layout_run.h"

#include <gtest/gtest.h>

#include <mutex>

#include "backend/cpu/cpu_backend.h"
#include "comm/staged_comm.h"
#include "comm/thread_comm.h"
#include "support/host_memory.h"
#include "train/trainer.h"

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
  c.model.vocab = vocab;
  c.model.tied = tied;
  c.train.micro_batch = micro;
  c.train.precision = precision;
  EXPECT_TRUE(parse_recompute(recompute, c.train.recompute));
  c.parallel.tp = tp;
  c.parallel.pp = pp;
  c.parallel.dp = dp;
  c.parallel.sequence = sp;
  c.parallel.zero1 = zero1;
  c.parallel.chunks = chunks;
  c.parallel.cuts = cuts;
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
  if (layers != 4) s += fmt::format("_layers{}", layers);
  if (micro != 1) s += fmt::format("_micro{}", micro);
  if (vocab != 101) s += fmt::format("_vocab{}", vocab);
  if (tied) s += "_tied";
  if (precision != PrecisionKind::fp32) s += fmt::format("_{}", name_of(precision));
  return s;
}

void lane_batch(const Config& c, int64_t step, int64_t first, int32_t* inputs, int32_t* targets) {
  for (int64_t r = 0; r < c.train.micro_batch; ++r) {
    RandomStream s(
        {.seed = 5, .stream = hash_name("batch"), .purpose = Noise::data, .step = static_cast<uint32_t>(step * 1000 + first + r)});
    for (int64_t t = 0; t < c.train.seq_len; ++t) {
      *inputs++ = static_cast<int32_t>(s.below(static_cast<uint64_t>(c.model.vocab)));
      *targets++ = static_cast<int32_t>(s.below(static_cast<uint64_t>(c.model.vocab)));
    }
  }
}

namespace {

constexpr double kUnset = -1e300;

// Puts this rank's slice of every parameter into its place; what another rank has put there must be the same bits.
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
        if (place != kUnset) {
          EXPECT_EQ(place, value) << spec.name << ": replicas differ";
        }
        place = value;
      }
  }
}

}  // namespace

void train_rank(const Config& config, int64_t steps, const LayoutRank& on, const AfterStep& after, LayoutResult& result,
                std::mutex& mutex) {
  Device& device = on.backend.device();
  Region measuring;
  const auto scratch_model = on.backend.make_ops(measuring);
  const Plan plan = dry_run(config, scratch_model.get(), on.rank, on.transport);
  PlannedMemory memory(device, plan.memory);
  const auto ops = on.backend.make_ops(memory.memory()[Purpose::temp]);
  StepRunner runner(config, precision_of(config.train.precision), on.mesh, memory.memory(), *ops, &device);
  runner.init_weights();
  std::vector<StepResult> mine;
  for (int64_t step = 1; step <= steps; ++step) {
    mine.push_back(
        runner.step(step, config.optim.lr, [&](int64_t first, int32_t* in, int32_t* out) { lane_batch(config, step, first, in, out); }));
    if (after) after(runner, step);
  }
  const std::lock_guard lock(mutex);
  EXPECT_NO_THROW(check_plan(plan.memory, memory.memory().high_water())) << "rank " << on.rank;
  EXPECT_EQ(plan.host_bytes, on.mesh.host_bytes()) << "rank " << on.rank;
  if (result.steps.empty()) result.steps = mine;
  for (size_t i = 0; i < mine.size(); ++i) {
    EXPECT_EQ(mine[i].loss, result.steps[i].loss) << "rank " << on.rank;
    EXPECT_EQ(mine[i].grad_norm, result.steps[i].grad_norm) << "rank " << on.rank;
    EXPECT_EQ(mine[i].param_norm, result.steps[i].param_norm) << "rank " << on.rank;
  }
  collect(runner.params(), device, result);
}

LayoutResult run_layout(const Config& config, int64_t steps, const AfterStep& after, const WrapComm& wrap,
                        const MakeBackend& make_backend) {
  LayoutResult result;
  std::mutex mutex;
  run_thread_ranks(mesh_shape(config.parallel).ranks(), [&](Comm& world) {
    const std::unique_ptr<Backend> backend =
        make_backend ? make_backend() : std::make_unique<CpuBackend>(CpuOptions{.threads = 1, .isa = "auto"});
    Device& device = backend->device();
    const bool staged = device.make_copy_stream() != nullptr;
    const Mesh mesh(config, world.rank(), [&](const AxisGroup& g) {
      auto comm = world.split(g.color, g.rank, g.name);
      if (wrap) comm = wrap(std::move(comm), world.rank());
      if (staged) comm = std::make_unique<StagedComm>(std::move(comm), [&] { return device.make_copy_stream(); });
      return comm;
    });
    train_rank(config, steps, {mesh, world.rank(), *backend, staged ? Transport::staged : Transport::host}, after, result, mutex);
  });
  for (const auto& [name, values] : result.weights)
    EXPECT_EQ(std::count(values.begin(), values.end(), kUnset), 0) << name << " has elements that no rank holds";
  return result;
}

}  // namespace hlat
