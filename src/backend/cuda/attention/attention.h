// Causal attention on CUDA: on Hopper GPUs our backward for head sizes 64 and 128; else cuDNN's where it takes the shape (bf16, head sizes
// it knows), else our plain kernels (choose_attention in ops/gpu_facts.h). All keep the same lse, so one may do the forward and another the
// backward. The backward is deterministic unless asked otherwise. Who computes a call is decided when it is first asked about and stays so:
// scratch depends on it. A run that is continued brings its own decisions, which go before these rules where they can.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "backend/cuda/attention/cudnn_attention.h"
#include "ops/gpu_facts.h"
#include "ops/kernel_choices.h"

namespace hlat {

struct AttentionCall {
  AttentionShape shape;
  DType dtype;
  bool backward;

  auto tied() const { return std::tie(shape.batch, shape.seq, shape.heads, shape.kv_heads, shape.head_dim, dtype, backward); }
  bool operator<(const AttentionCall& other) const { return tied() < other.tied(); }
  std::string str() const;  // "attention forward of 8 x 4096 tokens, 32 heads of 128 on 8 kv heads, bf16"
};

class CudaAttention {
 public:
  enum class Use { automatic, library, own };  // library: not the Hopper kernel; own: only the plain kernels
  explicit CudaAttention(cudaStream_t stream, bool deterministic = true, Use use = Use::automatic);
  ~CudaAttention();
  CudaAttention(const CudaAttention&) = delete;
  CudaAttention& operator=(const CudaAttention&) = delete;

  // Exact; the first question about a shape builds cuDNN's plan for it.
  size_t scratch(const AttentionShape& s, DType dtype, bool backward) const;
  void forward(Tensor out, Tensor lse, Tensor qkv, const AttentionShape& s, Tensor scratch);
  // With rope, where fuses_inverse_rope(): then the inverse RoPE of dq and dk, before they are rounded.
  void backward(Tensor dqkv, Tensor dout, Tensor out, Tensor lse, Tensor qkv, const AttentionShape& s, Tensor scratch, Tensor rope = {});
  bool fuses_inverse_rope(const AttentionShape& s, DType dtype) const { return chosen({s, dtype, true}) == AttentionBy::hopper; }

  // "cuDNN 9.19.0", "own kernels (without cuDNN: ...)", and a line for each shape that was asked about so far: who computes it.
  std::string describe() const;
  // Who computes a shape: "Hopper", "cuDNN", "own: what cuDNN said".
  std::string describe(const AttentionShape& s, DType dtype, bool backward) const;

  std::vector<std::string> libraries() const;  // whose kernels can be chosen here
  KernelsByLibrary kernels() const;            // of the calls that were made so far, and those that were given
  // Lines for the log: calls that were decided before, otherwise than the record has it, and stay so.
  std::vector<std::string> use(const KernelsByLibrary& recorded);
  std::vector<std::string> take_notes();  // since the last call: kernels of the record that cannot be had

 private:
  struct Decision {
    AttentionBy by;
    bool made = false;  // the call was, not only asked about
  };
  struct Kernel {
    std::string library, name;
    bool operator==(const Kernel&) const = default;
  };
  bool by_hopper(const AttentionCall& call) const;
  std::optional<size_t> cudnn_scratch(const AttentionCall& call) const;
  AttentionBy chosen(const AttentionCall& call) const { return decision(call).by; }
  AttentionBy make(const AttentionCall& call);  // who is to compute it now
  void note(const AttentionCall& call);
  Decision& decision(const AttentionCall& call) const;
  AttentionBy decide(const AttentionCall& call) const;
  Kernel kernel(const AttentionCall& call) const;
  std::optional<Kernel> recorded(const AttentionCall& call) const;
  std::optional<AttentionBy> recorded_by(const AttentionCall& call) const;

  cudaStream_t stream_;
  Use use_;
  GpuFacts gpu_;
  std::unique_ptr<CudnnAttention> cudnn_;  // null when not to be used
  mutable std::map<AttentionCall, Decision> decided_;
  KernelsByLibrary recorded_;  // of the run that is continued
  std::vector<std::string> notes_;
};

}  // namespace hlat
