#include "model/executor.h"

#include <algorithm>

#include "ops/download.h"

namespace hlat {

namespace {

Sharding sharding_of(const Config& c, const Mesh& mesh) {
  Sharding s{.bucket_bytes = c.parallel.bucket_mb << 20};
  if (c.parallel.zero1) s.shards = mesh.shape().dp, s.shard = mesh.coord().dp;
  return s;
}

int64_t rows_of(const Config& c, const Mesh& mesh) {
  return TpRegion(mesh.along(Axis::tp), c.parallel.sequence).rows(c.train.micro_batch * c.train.seq_len);
}

// Without a backward nothing is kept for it.
Recompute recompute_of(const Config& c, ParamUse use) {
  return use == ParamUse::training ? c.train.recompute : Recompute{.kind = RecomputeKind::full, .every = 0};
}

}  // namespace

Executor::Executor(const Config& config, const Precision& precision, const Mesh& mesh, Memory& memory, Ops& ops, Ops& inference,
                   Device& device, ParamUse use)
    : config_(config),
      mesh_(mesh),
      memory_(memory),
      ops_(ops),
      inference_(inference),
      device_(device),
      stat_(precision.compute == DType::f64 ? DType::f64 : DType::f32),
      use_(use),
      model_(config, mesh),
      params_(model_.specs(), precision, memory, sharding_of(config, mesh), use),
      fp8_(params_, mesh, config.parallel.zero1, config.train.global_batch * config.train.seq_len, ops, memory[Purpose::io]),
      tape_(memory, recompute_of(config, use)),
      links_(mesh.along(Axis::pp), memory[Purpose::comm], precision.compute, {rows_of(config, mesh), config.model.hidden},
             static_cast<int>(config.parallel.chunks)) {
  mesh.reserve(memory[Purpose::comm]);
  rope_ = memory[Purpose::weight].alloc(stat_, {config.train.seq_len, config.model.head_dim()}, "rope table");
  loss_sum_ = memory[Purpose::io].alloc(DType::f64, {1}, "loss");
  ops.rope_table(rope_, rope_frequencies(config.model));
}

void Executor::init_weights() {
  params_.init(ops_, config_.run.seed);
  weights_loaded(Fp8Start::declared);
}

Executor::Flight& Executor::flight(const Action& a) {
  const auto [it, fresh] = flights_.try_emplace({a.chunk, a.slot});
  Flight& f = it->second;
  if (!fresh) return f;
  const Llama::Chunk& c = chunk(a);
  const int64_t rows = rows_of(config_, mesh_), tokens = config_.train.micro_batch * config_.train.seq_len, width = config_.model.hidden;
  const DType act = params_.precision().compute;
  f.state.slot = a.slot;
  f.state.kept = use_ == ParamUse::training ? c.layers.count : std::min<int64_t>(c.layers.count, 2);
  if (c.first) f.state.ids = memory_[Purpose::io].alloc(DType::i32, {tokens}, "token ids");
  if (c.last) f.state.targets = memory_[Purpose::io].alloc(DType::i32, {tokens}, "targets");
  f.state.inputs = memory_[Purpose::saved].alloc(act, {f.state.kept * rows, width}, "block inputs");
  if (c.last) f.out = memory_[Purpose::saved].alloc(act, {rows, width}, "residual stream");
  return f;
}

Ctx Executor::context(Ops& ops, const GradientSums& sums, int64_t batch, int64_t seq) {
  const AttentionShape shape{
      .batch = batch, .seq = seq, .heads = mesh_.heads().q.count, .kv_heads = mesh_.heads().kv.count, .head_dim = config_.model.head_dim()};
  return Ctx{.ops = ops,
             .memory = memory_,
             .params = params_,
             .tape = tape_,
             .tp = {mesh_.along(Axis::tp), config_.parallel.sequence},
             .holders = &mesh_.along(Axis::kv),
             .attention = shape,
             .rope = rope_.rows(0, std::min(seq, rope_.dim(0))),
             .norm_eps = config_.model.norm_eps,
             .accumulate = sums.accumulate,
             .group_done = sums.group_done,
             .planted = planted_};
}

Ctx Executor::context(const Action& a, const GradientSums& sums) {
  Ctx ctx = context(sums, config_.train.seq_len);
  const int64_t first = part_of(config_.train.global_batch, mesh_.coord().dp, mesh_.shape().dp).begin;  // sequence of this replica
  ctx.noise = {.seed = config_.run.seed,
               .step = step_,
               .first_row = (first + a.micro * config_.train.micro_batch) * config_.train.seq_len,
               .rank = rank_of(mesh_.coord(), mesh_.shape())};
  return ctx;
}

// A backward runs forward passes again, and measures nothing a second time.
Ctx Executor::watched_context(const Action& a, const GradientSums& sums) {
  Ctx ctx = context(a, sums);
  ctx.watch = watch_;
  return ctx;
}

void Executor::load(const Action& a, const int32_t* inputs, const int32_t* targets) {
  const MicroState& s = flight(a).state;
  Comm& tp = mesh_.along(Axis::tp);
  const auto place = [&](const Tensor& t, const int32_t* tokens) {
    if (!t.defined()) return;
    if (tp.rank() == 0) device_.upload(t, tokens);
    tp.broadcast(t, 0);
  };
  place(s.ids, inputs);
  place(s.targets, targets);
}

void Executor::forward(Ctx& ctx, const Action& a, const MicroState& state, Tensor out) {
  const Llama::Chunk& c = chunk(a);
  HLAT_CHECK(!params_.precision().fp8 || fp8_.wide() == (ctx.kv != nullptr), "passes with a cache read widened weights, and no others do");
  if (!c.first) links_.recv(Flow::forward, model_.chunk_input(ctx, state), a.micro, a.chunk);
  model_.forward(ctx, a.chunk, state, c.last ? out : links_.buffer(Flow::forward, ctx.rows()));
  if (!c.last) links_.send(Flow::forward, a.micro, a.chunk);
}

void Executor::forward(const Action& a) {
  Flight& f = flight(a);
  Ctx ctx = watched_context(a);
  forward(ctx, a, f.state, f.out);
}

void Executor::loss(const Action& a) {
  const Flight& f = flight(a);
  Ctx ctx = watched_context(a);
  model_.loss(ctx, f.state, f.out, loss_sum_);
}

void Executor::loss_and_gradient(const Action& a, const GradientSums& sums, double scale) {
  const Flight& f = flight(a);
  Ctx ctx = watched_context(a, sums);
  model_.loss_and_gradient(ctx, f.state, f.out, loss_sum_, scale);
}

void Executor::backward(const Action& a, const GradientSums& sums) {
  HLAT_CHECK(use_ == ParamUse::training, "a backward of a model that was placed for evaluation");
  const Llama::Chunk& c = chunk(a);
  const Flight& f = flight(a);
  Ctx ctx = context(a, sums);
  const bool linked = mesh_.shape().pp > 1;
  const Tensor d = linked ? links_.buffer(Flow::backward, ctx.rows()) : f.out;
  if (!c.last)
    links_.recv(Flow::backward, d, a.micro, a.chunk);
  else if (linked)
    ops_.cast(d, f.out);
  model_.backward(ctx, a.chunk, f.state, d);
  if (!c.first) links_.send(Flow::backward, a.micro, a.chunk);
}

// To the layers the tokens are one sequence, whose positions only the cache's ops look at.
void Executor::forward_cached(Tensor ids, const KvPass& kv, const OutputUse& use) {
  Ctx ctx = context(inference_, {}, 1, ids.dim(0));
  ctx.rope = rope_;
  ctx.kv = &kv;
  for (int c = 0; c < static_cast<int>(chunks().size()); ++c) {
    const Action a{.chunk = c};
    const Flight& f = flight(a);
    MicroState state = f.state;
    if (chunk(a).first) state.ids = ids;
    const Tensor out = chunk(a).last ? f.out.rows(0, ctx.rows()) : Tensor{};
    forward(ctx, a, state, out);
    if (chunk(a).last) use(ctx, model_.head(), out);
  }
  finish_sends();
}

// Each rank fetches its part of the vocabulary and the host puts them together: the device needs no more memory than for a loss.
std::vector<float> Executor::next_logits(const std::vector<int32_t>& ids, int64_t seq, int64_t length) {
  const int64_t rows = config_.train.micro_batch, vocab = config_.model.vocab;
  HLAT_CHECK(1 <= length && length <= seq && seq <= config_.train.seq_len && static_cast<int64_t>(ids.size()) == rows * seq,
             "length {}, seq {}, {} ids for {} rows", length, seq, ids.size(), rows);
  Ctx ctx = context({}, seq);
  std::vector<float> logits(static_cast<size_t>(rows * vocab));
  const auto on_host = [&](int64_t row) { return Tensor::contiguous(logits.data() + row * vocab, DType::f32, {vocab}); };
  for (int c = 0; c < static_cast<int>(chunks().size()); ++c) {
    const Action a{.chunk = c};
    const Flight& f = flight(a);
    MicroState state = f.state;
    if (chunk(a).first) device_.upload(state.ids = state.ids.rows(0, rows * seq), ids.data());
    const Tensor out = chunk(a).last ? f.out.rows(0, ctx.rows()) : Tensor{};
    forward(ctx, a, state, out);
    if (!chunk(a).last) continue;
    const Scope scope(ctx.temp());
    const Tensor normed = model_.head().normalized(ctx, out);
    for (int64_t r = 0; r < rows; ++r) {
      const Scope inner(ctx.temp());
      const int64_t token = r * seq + length - 1;
      std::vector<float> own = download_f32(device_, model_.head().logits(ctx, normed.rows(token, token + 1)));
      mesh_.along(Axis::tp).host().all_gather(on_host(r), Tensor::contiguous(own.data(), DType::f32, {static_cast<int64_t>(own.size())}));
    }
  }
  finish_sends();
  for (int64_t r = 0; r < rows; ++r) mesh_.along(Axis::pp).host().broadcast(on_host(r), mesh_.shape().pp - 1);
  mesh_.check();  // a group that gave up lets the device go, with any values
  return logits;
}

}  // namespace hlat
