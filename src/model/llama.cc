#include "model/llama.h"

#include "config/linear_shapes.h"

#include "parallel/partition.h"

namespace hlat {
namespace {

// Those that take part in matrix products.
int64_t matmul_parameters(const ModelConfig& m) {
  int64_t block = 0;
  for (const LinearShape& l : linear_shapes(m)) block += l.outputs * l.inputs;
  return m.layers * block + m.vocab * m.hidden;
}

}  // namespace

Llama::Llama(const Config& config, const Mesh& mesh) : config_(config.model) {
  const int stages = mesh.shape().pp, count = static_cast<int>(config.parallel.chunks);
  const std::vector<Part> layers = partition_layers(config_.layers, stages, count, config.parallel.cuts);
  ParamBuilder params(mesh, config.parallel.sequence);
  const auto embed = [&] {
    embedding_group_ = params.next_group();
    embedding_.declare(params, config_);
    if (config_.tied) params.share(embedding_.table, Axis::ends, SharedGrad::partial);
  };
  if (mesh.first_stage()) embed();
  for (int c = 0; c < count; ++c) {
    const int stage = c * stages + mesh.coord().pp;  // virtual
    Chunk chunk{
        .layers = layers[static_cast<size_t>(stage)], .first = stage == 0, .last = stage + 1 == stages * count, .blocks = {}, .groups = {}};
    chunk.blocks.resize(static_cast<size_t>(chunk.layers.count));
    for (size_t i = 0; i < chunk.blocks.size(); ++i) {
      chunk.groups.push_back(params.next_group());
      chunk.blocks[i].declare(params, chunk.layers.begin + static_cast<int64_t>(i), config_, config.optim.decay_norms);
    }
    chunks_.push_back(std::move(chunk));
  }
  if (mesh.last_stage()) {
    if (config_.tied && stages > 1) embed();  // its own copy
    head_group_ = params.next_group();
    head_.declare(params, config_, config.train, config.optim.decay_norms, config_.tied ? embedding_.table : -1);
  }
  specs_ = params.take();
}

namespace {

// What block `layer` gets, or the head, whose number follows the last one's.
void watch_input(Ctx& ctx, int64_t layer, const Tensor& x) {
  if (ctx.watch != nullptr && ctx.watch->activation.defined()) ctx.ops.largest(ctx.watch->activation.rows(layer, layer + 1), x, true);
}

}  // namespace

void Llama::forward(Ctx& ctx, int chunk, const MicroState& s, Tensor y) const {
  const Chunk& c = chunks_[static_cast<size_t>(chunk)];
  const int64_t rows = ctx.rows(), count = c.layers.count;
  const auto input = [&](int64_t layer) {
    const int64_t place = layer % s.kept;
    return s.inputs.rows(place * rows, (place + 1) * rows);
  };
  if (c.first) embedding_.forward(ctx, s.ids, chunk_input(ctx, s));
  for (int64_t i = 0; i < count; ++i) {
    const Scope scope(ctx.temp());
    ctx.layer = c.layers.begin + i;
    ctx.tape.begin_forward({s.slot, ctx.layer});
    watch_input(ctx, ctx.layer, input(i));
    c.blocks[static_cast<size_t>(i)].forward(ctx, input(i), i + 1 < count ? input(i + 1) : y);
  }
}

void Llama::loss_and_gradient(Ctx& ctx, const MicroState& s, Tensor y, Tensor loss_sum, double scale) const {
  watch_input(ctx, config_.layers, y);
  head_.loss_and_gradient(ctx, y, s.targets, loss_sum, scale);
  ctx.done(head_group_);
}

void Llama::loss(Ctx& ctx, const MicroState& s, Tensor y, Tensor loss_sum) const {
  watch_input(ctx, config_.layers, y);
  head_.loss(ctx, y, s.targets, loss_sum);
}

void Llama::backward(Ctx& ctx, int chunk, const MicroState& s, Tensor d) const {
  const Chunk& c = chunks_[static_cast<size_t>(chunk)];
  const int64_t rows = ctx.rows();
  for (int64_t i = c.layers.count - 1; i >= 0; --i) {
    ctx.layer = c.layers.begin + i;
    ctx.tape.begin_recompute({s.slot, ctx.layer});
    c.blocks[static_cast<size_t>(i)].backward(ctx, s.inputs.rows(i * rows, (i + 1) * rows), d);
    ctx.done(c.groups[static_cast<size_t>(i)]);
  }
  if (!c.first) return;
  // A tied head of this rank has begun the gradient already.
  embedding_.backward(ctx, s.ids, d, ctx.accumulate || (config_.tied && c.last));
  ctx.done(embedding_group_);
}

int64_t parameter_count(const ModelConfig& m) {
  return matmul_parameters(m) + (2 * m.layers + 1) * m.hidden + (m.tied ? 0 : m.vocab * m.hidden);
}

double model_flops_per_token(const ModelConfig& m, int64_t seq_len) {
  return 6.0 * static_cast<double>(matmul_parameters(m)) +
         6.0 * static_cast<double>(m.layers) * static_cast<double>(m.heads * m.head_dim()) * static_cast<double>(seq_len);
}

}  // namespace hlat
