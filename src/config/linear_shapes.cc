#include "config/linear_shapes.h"

namespace hlat {

std::array<LinearShape, 4> linear_shapes(const ModelConfig& m) {
  const int64_t head = m.head_dim();
  return {{{"attention.qkv", (m.heads + 2 * m.kv()) * head, m.hidden},
           {"attention.output", m.hidden, m.heads * head},
           {"mlp.gate_up", 2 * m.ffn, m.hidden},
           {"mlp.down", m.hidden, m.ffn}}};
}

}  // namespace hlat
