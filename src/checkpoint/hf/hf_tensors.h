// How the tensors of a Hugging Face Llama folder and ours are the same weights. Ours are joined: q, k and v projections are the rows of one
// matrix, gate and up those of another, so each of theirs is a run of elements of one of ours. Rotary pairs are (i, i + E/2) in both.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/index.h"
#include "config/config.h"

namespace hlat {

struct HfPart {
  std::string name;            // "model.layers.0.self_attn.k_proj.weight"
  std::vector<int64_t> shape;  // (rows, columns), or (n)
  int64_t first = 0;           // element of our tensor that it begins with

  int64_t count() const;
};

struct HfTensor {
  SavedTensor tensor;  // ours, of kind weight
  std::vector<HfPart> parts;
};

// All of a model, in the order in which the model has them. A tied model has no tensor for its head.
std::vector<HfTensor> hf_tensors(const ModelConfig& model);

inline constexpr const char* kHfEmbedding = "model.embed_tokens.weight";
inline constexpr const char* kHfHead = "lm_head.weight";

}  // namespace hlat
