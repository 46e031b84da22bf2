#include "train/model_parts.h"

#include <charconv>

#include "base/error.h"
#include "param/param_names.h"

namespace hlat {

int64_t model_part(std::string_view name, int64_t layers) {
  constexpr std::string_view kBlocks = "layers.";
  if (name == kEmbeddingName) return 0;
  if (!name.starts_with(kBlocks)) return layers + 1;
  int64_t layer = -1;
  std::from_chars(name.data() + kBlocks.size(), name.data() + name.size(), layer);
  HLAT_CHECK(0 <= layer && layer < layers, "parameter {} of a model with {} layers", name, layers);
  return 1 + layer;
}

}  // namespace hlat
