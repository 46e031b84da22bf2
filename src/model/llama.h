// The Llama family: embedding, L blocks, head. Assembles the layers of nn; has no arithmetic of its own.
// A rank holds one chunk of consecutive blocks, or several with an interleaved pipeline. The chunk of the first virtual
// stage begins with the embedding, that of the last one ends with the head.
#pragma once

#include <vector>

#include "config/config.h"
#include "nn/block.h"
#include "nn/embedding.h"
#include "nn/head.h"
#include "parallel/mesh.h"

namespace hlat {

// What a micro-batch in flight keeps in a chunk, besides the tape.
struct MicroState {
  int slot = 0;
  Tensor ids;        // (N), first stage
  Tensor targets;    // (N), last stage
  Tensor inputs;     // (kept * rows, D): the inputs of the last `kept` blocks
  int64_t kept = 0;  // for a backward: all blocks of the chunk
};

class Llama {
 public:
  // Declares what this rank of the mesh holds.
  Llama(const Config& config, const Mesh& mesh);

  struct Chunk {
    Part layers;
    bool first = false, last = false;  // virtual stage: has the embedding, the head
    std::vector<Block> blocks;
    std::vector<int> groups;  // of the blocks' parameters
  };

  const std::vector<ParamSpec>& specs() const { return specs_; }
  const std::vector<Chunk>& chunks() const { return chunks_; }
  const Head& head() const { return head_; }

  // The input of the chunk's first block: written here when the chunk has the embedding, else by the caller beforehand.
  Tensor chunk_input(const Ctx& ctx, const MicroState& s) const { return s.inputs.rows(0, ctx.rows()); }
  void forward(Ctx& ctx, int chunk, const MicroState& s, Tensor y /*(rows, D)*/) const;
  // In the last chunk, after its forward: y becomes its gradient.
  void loss_and_gradient(Ctx& ctx, const MicroState& s, Tensor y, Tensor loss_sum, double scale) const;
  // The loss alone; y stays.
  void loss(Ctx& ctx, const MicroState& s, Tensor y, Tensor loss_sum) const;
  // d holds dL/dy on entry and the gradient of the chunk's input on return.
  void backward(Ctx& ctx, int chunk, const MicroState& s, Tensor d) const;

 private:
  ModelConfig config_;
  Embedding embedding_;
  Head head_;
  int embedding_group_ = 0, head_group_ = 0;
  std::vector<Chunk> chunks_;
  std::vector<ParamSpec> specs_;
};

// Training FLOPs of one token as MFU counts them: 6 x matmul parameters (head included, embedding look-up excluded)
// plus causal attention, 6 x L x D x T.
double model_flops_per_token(const ModelConfig& model, int64_t seq_len);

int64_t parameter_count(const ModelConfig& model);

}  // namespace hlat
