#include "config/presets.h"

#include <array>

namespace hlat {
namespace {

// The 70B run passed 0.021 as well, but its script never copied the flag: 0.02 is what was trained, and what the
// published initial parameter norm shows.
const std::array<ModelConfig, 5>& table() {
  static const std::array<ModelConfig, 5> models = {{
      {.preset = "hlat-7b", .layers = 32, .hidden = 4096, .heads = 32, .ffn = 11008, .vocab = 32000, .init_std = 0.021},
      {.preset = "hlat-70b", .layers = 80, .hidden = 8192, .heads = 64, .kv_heads = 8, .ffn = 28672, .vocab = 32000, .init_std = 0.02},
      {.preset = "llama-1b", .layers = 22, .hidden = 2048, .heads = 32, .kv_heads = 4, .ffn = 5632, .vocab = 32000},
      {.preset = "llama-134m", .layers = 12, .hidden = 768, .heads = 12, .ffn = 2048, .vocab = 32000},
      {.preset = "nano", .layers = 4, .hidden = 128, .heads = 4, .kv_heads = 2, .ffn = 384, .vocab = 512, .init_std = 0.08},
  }};
  return models;
}

}  // namespace

std::vector<std::string_view> preset_names() {
  std::vector<std::string_view> names;
  for (const ModelConfig& m : table()) names.push_back(m.preset);
  return names;
}

const ModelConfig* find_preset(std::string_view name) {
  for (const ModelConfig& m : table()) {
    if (m.preset == name) return &m;
  }
  return nullptr;
}

}  // namespace hlat
