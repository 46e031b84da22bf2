#include "checkpoint/hf/hf_tensors.h"

#include <functional>
#include <numeric>

#include "param/param_names.h"

namespace hlat {

namespace {

struct Rows {
  std::string name;  // theirs
  int64_t count;
};

HfTensor matrix(std::string name, int64_t columns, const std::vector<Rows>& parts) {
  HfTensor t;
  int64_t rows = 0;
  for (const Rows& part : parts) {
    t.parts.push_back({.name = part.name, .shape = {part.count, columns}, .first = rows * columns});
    rows += part.count;
  }
  t.tensor = {.name = std::move(name), .shape = {rows, columns}};
  return t;
}

HfTensor vector(std::string name, int64_t size, std::string theirs) {
  return {.tensor = {.name = std::move(name), .shape = {size}}, .parts = {{.name = std::move(theirs), .shape = {size}}}};
}

}  // namespace

int64_t HfPart::count() const { return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>()); }

std::vector<HfTensor> hf_tensors(const ModelConfig& m) {
  const int64_t q = m.heads * m.head_dim(), kv = m.kv() * m.head_dim();
  std::vector<HfTensor> all = {matrix(std::string(kEmbeddingName), m.hidden, {{kHfEmbedding, m.vocab}})};
  for (int64_t i = 0; i < m.layers; ++i) {
    const std::string ours = fmt::format("layers.{}.", i), theirs = "model." + ours;
    const std::string attention = theirs + "self_attn.", mlp = theirs + "mlp.";
    all.push_back(vector(ours + "norm1", m.hidden, theirs + "input_layernorm.weight"));
    all.push_back(matrix(ours + "attention.qkv", m.hidden,
                         {{attention + "q_proj.weight", q}, {attention + "k_proj.weight", kv}, {attention + "v_proj.weight", kv}}));
    all.push_back(matrix(ours + "attention.output", q, {{attention + "o_proj.weight", m.hidden}}));
    all.push_back(vector(ours + "norm2", m.hidden, theirs + "post_attention_layernorm.weight"));
    all.push_back(matrix(ours + "mlp.gate_up", m.hidden, {{mlp + "gate_proj.weight", m.ffn}, {mlp + "up_proj.weight", m.ffn}}));
    all.push_back(matrix(ours + "mlp.down", m.ffn, {{mlp + "down_proj.weight", m.hidden}}));
  }
  all.push_back(vector("head.norm", m.hidden, "model.norm.weight"));
  if (!m.tied) all.push_back(matrix(std::string(kHeadName), m.hidden, {{kHfHead, m.vocab}}));
  return all;
}

}  // namespace hlat
