#include "nn/tape.h"

namespace hlat {

namespace {

constexpr std::array<const char*, kBlockOps> kOpNames = {"norm1", "qkv", "attention", "mid", "norm2", "gate_up", "swiglu"};

}  // namespace

KeepMask keep_mask(const Recompute& policy, int64_t layer) {
  if (policy.every > 0) return layer % policy.every == 0 ? kKeepNothing : kKeepAll;
  switch (policy.kind) {
    case RecomputeKind::none: return kKeepAll;
    case RecomputeKind::selective: return kKeepSelective;
    case RecomputeKind::full: return kKeepNothing;
  }
  return kKeepAll;
}

Tape::Tape(Memory& memory, const Recompute& policy, int64_t layers)
    : memory_(memory), policy_(policy), kept_(static_cast<size_t>(layers)), mark_(static_cast<size_t>(layers)) {}

void Tape::begin_forward(int64_t layer) {
  layer_ = layer;
  keep_ = keep_mask(policy_, layer);
  replaying_ = false;
  mark_[static_cast<size_t>(layer)] = memory_[Purpose::saved].mark();
}

void Tape::begin_replay(int64_t layer) {
  layer_ = layer;
  keep_ = keep_mask(policy_, layer);
  replaying_ = true;
  current_ = kept_[static_cast<size_t>(layer)];
}

void Tape::release(int64_t layer) { memory_[Purpose::saved].release(mark_[static_cast<size_t>(layer)]); }

Slot Tape::slot(BlockOp op, int output, DType dtype, const Shape& shape) {
  const auto o = static_cast<size_t>(op), i = static_cast<size_t>(output);
  const bool keep = keep_ >> o & 1u;
  if (replaying_ && keep) return {current_[o][i], false};
  const std::string label = fmt::format("block {} {}", layer_, kOpNames[o]);
  const Tensor t = memory_[keep ? Purpose::saved : Purpose::temp].alloc(dtype, shape, label);
  if (keep) kept_[static_cast<size_t>(layer_)][o][i] = t;
  current_[o][i] = t;
  return {t, true};
}

Tensor Tape::at(BlockOp op, int output) const {
  const Tensor t = current_[static_cast<size_t>(op)][static_cast<size_t>(output)];
  HLAT_CHECK(replaying_ && t.defined(), "block {}: output {} of {} was not made", layer_, output, kOpNames[static_cast<size_t>(op)]);
  return t;
}

}  // namespace hlat
