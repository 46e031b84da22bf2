// The tape decides, per op of a block, whether its outputs are kept for the backward or made again.
// A layer has one forward; it asks for every output by slot() and computes it when the slot is stale. In the forward
// pass all slots are stale. Before a block's backward the same forward runs again in replay: kept slots are there
// already, the others lie in temporary memory and are computed once more. A recompute policy is a table of bits.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

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
// Norms and the SwiGLU product are cheap to make again; our attention never stores its scores, so it is kept.
inline constexpr KeepMask kKeepSelective =
    kKeepAll & ~(1u << static_cast<int>(BlockOp::norm1) | 1u << static_cast<int>(BlockOp::norm2) | 1u << static_cast<int>(BlockOp::swiglu));

KeepMask keep_mask(const Recompute& policy, int64_t layer);

struct Slot {
  Tensor tensor;
  bool stale = true;  // must be computed now
};

class Tape {
 public:
  Tape(Memory& memory, const Recompute& policy, int64_t layers);

  // Brackets one block. Temporary slots live until the caller releases the temp region.
  void begin_forward(int64_t layer);
  void begin_replay(int64_t layer);
  void release(int64_t layer);  // frees the block's kept outputs; blocks are released last to first

  Slot slot(BlockOp op, int output, DType dtype, const Shape& shape);
  Tensor at(BlockOp op, int output = 0) const;  // in the backward, after the replay

 private:
  using Outputs = std::array<std::array<Tensor, kMaxOutputs>, kBlockOps>;

  Memory& memory_;
  Recompute policy_;
  std::vector<Outputs> kept_;  // per layer
  std::vector<size_t> mark_;   // of the saved region, per layer
  Outputs current_{};
  int64_t layer_ = 0;
  KeepMask keep_ = kKeepAll;
  bool replaying_ = false;
};

}  // namespace hlat
