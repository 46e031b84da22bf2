#include "model/llama.h"

namespace hlat {

Llama::Llama(const ModelConfig& model, const TrainConfig& train, bool decay_norms)
    : config_(model), blocks_(static_cast<size_t>(model.layers)) {
  ParamBuilder params;
  embedding_.declare(params, model);
  for (int64_t l = 0; l < model.layers; ++l) blocks_[static_cast<size_t>(l)].declare(params, l, model, decay_norms);
  head_.declare(params, model, train, decay_norms, embedding_.table);
  specs_ = params.take();
}

void Llama::forward(Ctx& ctx, Tensor ids, Tensor y) {
  const int64_t n = ctx.tokens(), layers = config_.layers;
  inputs_ = ctx.memory[Purpose::saved].alloc(ctx.act(), {layers * n, config_.hidden}, "block inputs");
  embedding_.forward(ctx, ids, input(0, n));
  for (int64_t l = 0; l < layers; ++l) {
    const Scope scope(ctx.temp());
    ctx.tape.begin_forward(l);
    blocks_[static_cast<size_t>(l)].forward(ctx, input(l, n), l + 1 < layers ? input(l + 1, n) : y);
  }
}

void Llama::backward(Ctx& ctx, Tensor ids, Tensor d) {
  for (int64_t l = config_.layers - 1; l >= 0; --l) {
    ctx.tape.begin_replay(l);
    blocks_[static_cast<size_t>(l)].backward(ctx, input(l, ctx.tokens()), d);
    ctx.tape.release(l);
  }
  embedding_.backward(ctx, ids, d, ctx.accumulate || config_.tied);
}

int64_t matmul_parameters(const ModelConfig& m) {
  const int64_t attention = (m.heads + 2 * m.kv()) * m.head_dim() * m.hidden + m.hidden * m.heads * m.head_dim();
  return m.layers * (attention + 3 * m.hidden * m.ffn) + m.vocab * m.hidden;
}

double model_flops_per_token(const ModelConfig& m, int64_t seq_len) {
  return 6.0 * static_cast<double>(matmul_parameters(m)) +
         6.0 * static_cast<double>(m.layers) * static_cast<double>(m.heads * m.head_dim()) * static_cast<double>(seq_len);
}

}  // namespace hlat
