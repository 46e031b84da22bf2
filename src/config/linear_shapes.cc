#include "config/linear_shapes.h"

#include "base/fp8.h"
#include "config/head_share.h"

namespace hlat {

std::array<LinearShape, 4> linear_shapes(const ModelConfig& m) {
  const int64_t head = m.head_dim();
  return {{{"attention.qkv", (m.heads + 2 * m.kv()) * head, m.hidden},
           {"attention.output", m.hidden, m.heads * head},
           {"mlp.gate_up", 2 * m.ffn, m.hidden},
           {"mlp.down", m.hidden, m.ffn}}};
}

LinearShape linear_shard(const ModelConfig& m, LinearPlace place, int tp_rank, int tp) {
  LinearShape shard = linear_shapes(m)[static_cast<size_t>(place)];
  const auto heads = [&] { return share_heads(m.heads, m.kv(), tp_rank, tp); };
  const auto ffn = [&] { return part_of(m.ffn, tp_rank, tp).count; };
  switch (place) {
    case LinearPlace::qkv: shard.outputs = (heads().q.count + 2 * heads().kv.count) * m.head_dim(); break;
    case LinearPlace::output: shard.inputs = heads().q.count * m.head_dim(); break;
    case LinearPlace::gate_up: shard.outputs = 2 * ffn(); break;
    case LinearPlace::down: shard.inputs = ffn(); break;
  }
  return shard;
}

std::optional<int> fp8_cut(const ModelConfig& m, LinearPlace place, int tp) {
  const LinearShape whole = linear_shapes(m)[static_cast<size_t>(place)];
  const bool attention = place == LinearPlace::qkv || place == LinearPlace::output;
  if (!fp8_fits(whole.outputs, whole.inputs) || (attention && m.head_dim() % kFp8Grain == 0)) return std::nullopt;
  for (int rank = 0; rank < tp; ++rank)
    if (const LinearShape shard = linear_shard(m, place, rank, tp); !fp8_fits(shard.outputs, shard.inputs)) return rank;
  return std::nullopt;
}

}  // namespace hlat
