// The Llama family: embedding, L blocks, head. Assembles the layers of nn; has no arithmetic of its own.
#pragma once

#include <vector>

#include "config/config.h"
#include "nn/block.h"
#include "nn/embedding.h"
#include "nn/head.h"

namespace hlat {

class Llama {
 public:
  Llama(const ModelConfig& model, const TrainConfig& train, bool decay_norms);

  std::vector<ParamSpec> specs() const { return specs_; }
  const Head& head() const { return head_; }

  // Runs all blocks; block inputs and the tape's kept outputs stay in the saved region until backward or the caller frees them.
  void forward(Ctx& ctx, Tensor ids /*(N)*/, Tensor y /*(N, D)*/);
  // d holds dL/dy on entry and is used up.
  void backward(Ctx& ctx, Tensor ids, Tensor d);

 private:
  ModelConfig config_;
  Embedding embedding_;
  std::vector<Block> blocks_;
  Head head_;
  std::vector<ParamSpec> specs_;
  Tensor inputs_;  // (L * N, D): the input of every block

  Tensor input(int64_t layer, int64_t tokens) const { return inputs_.rows(layer * tokens, (layer + 1) * tokens); }
};

// Training FLOPs of one token as MFU counts them: 6 x matmul parameters (head included, embedding look-up excluded)
// plus causal attention, 6 x L x D x T.
double model_flops_per_token(const ModelConfig& model, int64_t seq_len);

// Parameters that take part in matrix products.
int64_t matmul_parameters(const ModelConfig& model);

}  // namespace hlat
