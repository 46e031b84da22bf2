#include "train/step_runner.h"

#include <array>
#include <chrono>
#include <cmath>

namespace hlat {

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

DType stat_of(const Precision& p) { return p.compute == DType::f64 ? DType::f64 : DType::f32; }

int64_t micros_of(const Config& c, const Mesh& mesh) {
  const int64_t rows = c.train.micro_batch * mesh.shape().dp;
  HLAT_CHECK(c.train.global_batch % rows == 0, "global batch {} in micro-batches of {} x {}", c.train.global_batch, c.train.micro_batch,
             mesh.shape().dp);
  return c.train.global_batch / rows;
}

Sharding sharding_of(const Config& c, const Mesh& mesh) {
  Sharding s{.bucket_bytes = c.parallel.bucket_mb << 20};
  if (c.parallel.zero1) s.shards = mesh.shape().dp, s.shard = mesh.coord().dp;
  return s;
}

int64_t rows_of(const Config& c, const Mesh& mesh) {
  return TpRegion(mesh.along(Axis::tp), c.parallel.sequence).rows(c.train.micro_batch * c.train.seq_len);
}

}  // namespace

StepRunner::StepRunner(const Config& config, const Precision& precision, const Mesh& mesh, Memory& memory, Ops& ops, Device* device)
    : config_(config),
      mesh_(mesh),
      memory_(memory),
      ops_(ops),
      device_(device),
      micros_(micros_of(config, mesh)),
      schedule_(make_schedule(mesh.coord().pp, mesh.shape().pp, static_cast<int>(micros_), static_cast<int>(config.parallel.chunks))),
      model_(config, mesh),
      params_(model_.specs(), precision, memory, sharding_of(config, mesh), ParamUse::training),
      tape_(memory, config.train.recompute),
      optimizer_(config.optim, config.run.seed),
      sync_(params_, mesh, config.parallel.zero1),
      health_(params_, mesh, config.parallel.zero1, config.parallel.health_every, ops, device, memory[Purpose::io]),
      links_(mesh.along(Axis::pp), memory[Purpose::comm], precision.compute, {rows_of(config, mesh), config.model.hidden},
             static_cast<int>(config.parallel.chunks)) {
  Region& io = memory[Purpose::io];
  mesh.reserve(memory[Purpose::comm]);
  rope_ = memory[Purpose::weight].alloc(stat_of(precision), {config.train.seq_len, config.model.head_dim()}, "rope table");
  loss_sum_ = io.alloc(DType::f64, {1}, "loss");
  totals_ = io.alloc(DType::f64, {kTotals}, "sums over ranks");
  const auto units = static_cast<int64_t>(params_.units().size());
  scalars_.grad_sq = io.alloc(DType::f64, {units}, "gradient norms");
  scalars_.weight_sq = io.alloc(DType::f64, {units}, "parameter norms");
  scalars_.scale = io.alloc(stat_of(precision), {1}, "clipping factor");
  scalars_.step = io.alloc(DType::f64, {kAdamwStep}, "learning rate and step");
  ops.rope_table(rope_, config.model.rope_theta);
  if (device_ != nullptr) {
    const auto tokens = static_cast<size_t>(config.train.micro_batch * config.train.seq_len);
    host_ids_.resize(tokens);
    host_targets_.resize(tokens);
  }
}

void StepRunner::init_weights() { params_.init(ops_, config_.run.seed); }

StepRunner::Flight& StepRunner::flight(int chunk, int slot) {
  const auto [it, fresh] = flights_.try_emplace({chunk, slot});
  Flight& f = it->second;
  if (!fresh) return f;
  const Llama::Chunk& c = model_.chunks()[static_cast<size_t>(chunk)];
  const int64_t rows = rows_of(config_, mesh_), tokens = config_.train.micro_batch * config_.train.seq_len, width = config_.model.hidden;
  const DType act = params_.precision().compute;
  f.state.slot = slot;
  if (c.first) f.state.ids = memory_[Purpose::io].alloc(DType::i32, {tokens}, "token ids");
  if (c.last) f.state.targets = memory_[Purpose::io].alloc(DType::i32, {tokens}, "targets");
  f.state.inputs = memory_[Purpose::saved].alloc(act, {c.layers.count * rows, width}, "block inputs");
  if (c.last) f.out = memory_[Purpose::saved].alloc(act, {rows, width}, "residual stream");
  return f;
}

Ctx StepRunner::context(bool accumulate, int64_t seq) {
  const AttentionShape shape{.batch = config_.train.micro_batch,
                             .seq = seq,
                             .heads = mesh_.heads().q.count,
                             .kv_heads = mesh_.heads().kv.count,
                             .head_dim = config_.model.head_dim()};
  return Ctx{.ops = ops_,
             .memory = memory_,
             .params = params_,
             .tape = tape_,
             .tp = {mesh_.along(Axis::tp), config_.parallel.sequence},
             .attention = shape,
             .rope = rope_.rows(0, seq),
             .norm_eps = config_.model.norm_eps,
             .accumulate = accumulate};
}

// Micro-batches of a chunk come in order, so the first one begins its gradients and the last one completes them.
Ctx StepRunner::context(const Action& a) {
  Ctx ctx = context(a.micro > 0, config_.train.seq_len);
  if (a.micro + 1 == micros_) ctx.group_done = [this](int group) { sync_.group_done(group); };
  return ctx;
}

void StepRunner::load(const Action& a, const MicroState& s, const FillBatch& fill, StepResult& result) {
  if (device_ == nullptr) return;
  const auto start = std::chrono::steady_clock::now();
  const int64_t per_replica = config_.train.global_batch / mesh_.shape().dp;
  fill(mesh_.coord().dp * per_replica + a.micro * config_.train.micro_batch, host_ids_.data(), host_targets_.data());
  result.data_wait_s += seconds_since(start);
  if (s.ids.defined()) device_->upload(s.ids, host_ids_.data());
  if (s.targets.defined()) device_->upload(s.targets, host_targets_.data());
}

void StepRunner::run_forward(const Action& a, const FillBatch& fill, StepResult& result) {
  const Llama::Chunk& chunk = model_.chunks()[static_cast<size_t>(a.chunk)];
  Flight& f = flight(a.chunk, a.slot);
  Ctx ctx = context(a);
  if (chunk.first || chunk.last) load(a, f.state, fill, result);
  if (!chunk.first) links_.recv(Flow::forward, model_.chunk_input(ctx, f.state), a.micro, a.chunk);
  const Tensor y = chunk.last ? f.out : links_.buffer(Flow::forward);
  model_.forward(ctx, a.chunk, f.state, y);
  const double tokens = static_cast<double>(config_.train.global_batch * config_.train.seq_len);
  if (chunk.last)
    model_.loss_and_gradient(ctx, f.state, y, loss_sum_, 1.0 / tokens);
  else
    links_.send(Flow::forward, a.micro, a.chunk);
}

void StepRunner::run_backward(const Action& a) {
  const Llama::Chunk& chunk = model_.chunks()[static_cast<size_t>(a.chunk)];
  Flight& f = flight(a.chunk, a.slot);
  Ctx ctx = context(a);
  const bool linked = mesh_.shape().pp > 1;
  const Tensor d = linked ? links_.buffer(Flow::backward) : f.out;
  if (!chunk.last)
    links_.recv(Flow::backward, d, a.micro, a.chunk);
  else if (linked)
    ops_.cast(d, f.out);
  model_.backward(ctx, a.chunk, f.state, d);
  if (!chunk.first) links_.send(Flow::backward, a.micro, a.chunk);
}

void StepRunner::micro_step(Tensor ids, Tensor targets, bool accumulate) {
  HLAT_CHECK(mesh_.shape().pp == 1, "{} pipeline stages", mesh_.shape().pp);
  Flight& f = flight(0, 0);
  MicroState state = f.state;
  state.ids = ids;
  state.targets = targets;
  Ctx ctx = context(accumulate, config_.train.seq_len);
  const double tokens = static_cast<double>(config_.train.global_batch * config_.train.seq_len);
  model_.forward(ctx, 0, state, f.out);
  model_.loss_and_gradient(ctx, state, f.out, loss_sum_, 1.0 / tokens);
  model_.backward(ctx, 0, state, f.out);
}

Tensor StepRunner::total(size_t index) const { return totals_.rows(static_cast<int64_t>(index), static_cast<int64_t>(index) + 1); }

void StepRunner::sum_over_ranks(Tensor t, bool over_tp, bool over_dp) {
  if (over_tp) mesh_.along(Axis::tp).all_reduce(t);
  if (over_dp) mesh_.along(Axis::dp).all_reduce(t);
  mesh_.along(Axis::pp).all_reduce(t);
}

// Only the queue's work on dp goes on beside the computation.
StepRunner::CommTime StepRunner::comm_time() const {
  double all = 0;
  for (const auto& comm : mesh_.comms()) all += comm->traffic().seconds();
  return {all, all - sync_.queue().busy_s() + sync_.queue().waited_s()};
}

void StepRunner::run_schedule(const FillBatch& fill, StepResult& result) {
  for (const Action& a : schedule_.actions) {
    if (a.kind == ActionKind::forward)
      run_forward(a, fill, result);
    else
      run_backward(a);
  }
  links_.flush();
  ran_ = true;
}

// The micro-batches of a lone rank, recorded after a first step, in which ops may still choose their kernels.
// False: nothing was done, because the device does not record or every op is timed.
bool StepRunner::replay(const FillBatch& fill, StepResult& result) {
  const bool lone = device_ != nullptr && mesh_.shape().ranks() == 1 && model_.chunks().size() == 1;
  if (!config_.device.graphs || !lone || !ran_ || ops_.timing()) return false;
  const MicroState state = flight(0, 0).state;
  for (int64_t micro = 0; micro < micros_; ++micro) {
    std::unique_ptr<Recording>& recording = recordings_[micro > 0];
    if (recording == nullptr) recording = device_->record([&] { micro_step(state.ids, state.targets, micro > 0); });
    if (recording == nullptr) return false;
    load({.kind = ActionKind::forward, .micro = static_cast<int>(micro)}, state, fill, result);
    recording->run();
  }
  sync_.all_done();
  return true;
}

StepResult StepRunner::step(int64_t step, double lr, const FillBatch& fill) {
  StepResult result;
  const CommTime before = comm_time();
  ops_.fill(loss_sum_, 0);
  if (device_ != nullptr) optimizer_.begin_step(*device_, scalars_, lr, step);
  result.checked = health_.due(step);
  sync_.begin_step(result.checked ? &health_ : nullptr);
  if (!replay(fill, result)) run_schedule(fill, result);
  sync_.finish();
  if (result.checked) health_.check_gradients(step);

  const bool zero1 = config_.parallel.zero1;
  optimizer_.measure(ops_, params_, scalars_, total(kGradSq));
  sum_over_ranks(total(kGradSq), true, zero1);
  optimizer_.clip(ops_, scalars_, total(kGradSq));
  update();
  // Losses are equal on all tp ranks of the last stage and zero on other stages.
  ops_.cast(total(kLoss), loss_sum_);
  sum_over_ranks(total(kLoss), false, true);
  sum_over_ranks(total(kWeightSq), true, zero1);
  read_totals(step, result);
  if (result.checked) health_.check_weights(step);
  const CommTime after = comm_time();
  result.comm_s = after.all - before.all;
  result.comm_wait_s = after.waited - before.waited;
  return result;
}

// The only point of a step where the host waits for the device.
void StepRunner::read_totals(int64_t step, StepResult& result) const {
  if (device_ == nullptr) return;
  std::array<double, kTotals> t{};
  device_->download(t.data(), totals_);
  mesh_.check();
  result.loss = t[kLoss] / static_cast<double>(config_.train.global_batch * config_.train.seq_len);
  result.grad_norm = std::sqrt(t[kGradSq]);
  result.param_norm = std::sqrt(t[kWeightSq]);
  check_finite(step, result.loss, t[kGradSq]);
}

// Bucket by bucket, so that the gathering of one goes on under the update of the next.
void StepRunner::update() {
  for (int b = 0; b < static_cast<int>(params_.buckets().size()); ++b) {
    optimizer_.update(ops_, params_, scalars_, b);
    sync_.gather(b);
  }
  ops_.sum(total(kWeightSq), scalars_.weight_sq.rows(0, params_.counted_units()));
  sync_.finish_gathers();
}

// Gradients that are not finite have changed no weight: the clipping factor was NaN.
void StepRunner::check_finite(int64_t step, double loss, double grad_sq) const {
  if (std::isfinite(loss) && std::isfinite(grad_sq)) return;
  const auto& units = params_.units();
  std::vector<double> sq(units.size());
  device_->download(sq.data(), scalars_.grad_sq);
  std::vector<std::string> names;
  for (size_t i = 0; i < sq.size(); ++i) {
    const std::string& name = params_.spec(units[i].param).name;
    if (!std::isfinite(sq[i]) && (names.empty() || names.back() != name)) names.push_back(name);
  }
  std::string bad;
  for (size_t i = 0; i < std::min<size_t>(names.size(), 5); ++i) bad += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > 5) bad += fmt::format(" and {} more", names.size() - 5);
  const bool elsewhere = names.empty() && !std::isfinite(grad_sq);
  fail("at step {} {} ({}); the weights are those of step {}", step,
       std::isfinite(loss) ? "a gradient is not finite" : fmt::format("the loss is {}", loss),
       !names.empty() ? "gradient of " + bad
       : elsewhere    ? "the gradients of this rank are finite, those of another are not"
                      : "all gradients are finite",
       step - 1);
}

std::vector<float> StepRunner::next_logits(const std::vector<int32_t>& ids, int64_t seq, int64_t length) {
  const int64_t rows = config_.train.micro_batch, vocab = config_.model.vocab;
  HLAT_CHECK(
      device_ != nullptr && 1 <= length && length <= seq && seq <= config_.train.seq_len && static_cast<int64_t>(ids.size()) == rows * seq,
      "length {}, seq {}, {} ids for {} rows", length, seq, ids.size(), rows);
  HLAT_CHECK(mesh_.shape().tp == 1 && mesh_.shape().pp == 1, "generation with tp {}, pp {}", mesh_.shape().tp, mesh_.shape().pp);
  Ctx ctx = context(false, seq);
  const Flight& f = flight(0, 0);
  MicroState state = f.state;
  state.ids = f.state.ids.rows(0, rows * seq);
  device_->upload(state.ids, ids.data());
  const Tensor x = f.out.rows(0, rows * seq);
  model_.forward(ctx, 0, state, x);
  std::vector<float> host(static_cast<size_t>(rows * vocab));
  for (int64_t r = 0; r < rows; ++r) {
    const Scope scope(ctx.temp());
    const Tensor logits = ctx.temp({1, vocab}, "logits"), wide = ctx.temp().alloc(DType::f32, {1, vocab}, "logits in f32");
    const int64_t row = r * seq + length - 1;
    model_.head().logits(ctx, x.rows(row, row + 1), logits);
    ops_.cast(wide, logits);
    device_->download(host.data() + r * vocab, wide);
  }
  return host;
}

}  // namespace hlat
