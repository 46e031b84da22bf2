// The tape decides, per op of a block, whether its outputs are kept for the backward or recomputed.
// A layer has one forward; it asks for every output by output() and computes it when it is stale. In the forward
// pass all are. Before a block's backward the same forward runs again to recompute: kept outputs are there
// already, the others lie in temporary memory and are computed once more. A recompute policy is a table of bits.
// Kept outputs belong to a key (slot, layer): a slot is the buffer set of one micro-batch in flight. They are allocated when a
// key is first used and stay, since micro-batches in a pipeline do not end in the reverse order of their start.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>

#include "config/policy.h"
#include "tensor/region.h"

namespace hlat {

// Ops of a block whose outputs the backward needs. All outputs of one op share one keep bit.
enum class BlockOp : uint8_t { norm1, qkv, attention, mid, norm2, gate_up, swiglu };
inline constexpr int kBlockOps = 7;
inline constexpr int kMaxOutputs = 2;

// Bit i set: outputs of BlockOp i are kept.
using KeepMask = uint32_t;
inline constexpr KeepMask kKeepAll = (1u << kBlockOps) - 1;
inline constexpr KeepMask kKeepNothing = 0;
// Norms and the SwiGLU product are cheap to recompute; our attention never stores its scores, so it is kept.
inline constexpr KeepMask kKeepSelective =
    kKeepAll & ~(1u << static_cast<int>(BlockOp::norm1) | 1u << static_cast<int>(BlockOp::norm2) | 1u << static_cast<int>(BlockOp::swiglu));

struct TapeOutput {
  Tensor tensor;
  bool stale = true;  // must be computed now
};

struct TapeKey {
  int slot = 0;
  int64_t layer = 0;  // of the whole model
  auto operator<=>(const TapeKey&) const = default;
};

class Tape {
 public:
  Tape(Memory& memory, const Recompute& policy) : memory_(memory), policy_(policy) {}

  // Before one block. Temporary outputs live until the caller releases the temp region.
  void begin_forward(TapeKey key) { begin(key, false); }
  void begin_recompute(TapeKey key) { begin(key, true); }

  TapeOutput output(BlockOp op, int output, DType dtype, const Shape& shape);
  Tensor at(BlockOp op, int output = 0) const;       // in the backward, after recomputation
  bool recomputing() const { return recomputing_; }  // since begin_recompute
  // Whether this pass computes the outputs of an op, and whether the backward reads what this pass outputs.
  bool computes(BlockOp op) const { return !recomputing_ || !keeps(op); }
  bool lasts(BlockOp op) const { return recomputing_ || keeps(op); }
  size_t fp8_saves() const { return fp8_saves_; }  // bytes that kept outputs in FP8 would take more in bf16

 private:
  using Outputs = std::array<std::array<Tensor, kMaxOutputs>, kBlockOps>;

  void begin(TapeKey key, bool recomputing);
  bool keeps(BlockOp op) const { return (keep_ >> static_cast<int>(op) & 1u) != 0; }
  Tensor kept(Tensor& place, DType dtype, const Shape& shape, const std::string& label);

  Memory& memory_;
  Recompute policy_;
  std::map<TapeKey, Outputs> kept_;
  Outputs* own_ = nullptr;  // kept outputs of the current key
  Outputs current_{};
  int64_t layer_ = 0;
  KeepMask keep_ = kKeepAll;
  bool recomputing_ = false;
  size_t fp8_saves_ = 0;
};

}  // namespace hlat
