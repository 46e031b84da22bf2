#include "nn/tape.h"

namespace hlat {
namespace {

constexpr std::array<const char*, kBlockOps> kOpNames = {"norm1", "qkv", "attention", "mid", "norm2", "gate_up", "swiglu"};

// As a region does it.
size_t aligned(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

KeepMask keep_mask(const Recompute& policy, int64_t layer) {
  if (policy.every > 0) return layer % policy.every == 0 ? kKeepNothing : kKeepAll;
  switch (policy.kind) {
    case RecomputeKind::none: return kKeepAll;
    case RecomputeKind::selective: return kKeepSelective;
    case RecomputeKind::full: return kKeepNothing;
  }
  return kKeepAll;
}

}  // namespace

void Tape::begin(TapeKey key, bool recomputing) {
  layer_ = key.layer;
  keep_ = keep_mask(policy_, key.layer);
  recomputing_ = recomputing;
  own_ = &kept_[key];
  current_ = {};
}

// A shorter sequence (generation) uses the front of what a step allocated.
Tensor Tape::kept(Tensor& place, DType dtype, const Shape& shape, const std::string& label) {
  if (!place.defined()) {
    place = memory_[Purpose::saved].alloc(dtype, shape, label);
    if (is_fp8(dtype)) fp8_saves_ += aligned(2 * place.bytes()) - aligned(place.bytes());
  }
  HLAT_CHECK(place.dtype == dtype && place.numel() >= shape.numel(), "{}: {} asked of {}", label, shape.str(), place.str());
  return place.viewed(shape);
}

TapeOutput Tape::output(BlockOp op, int output, DType dtype, const Shape& shape) {
  const auto o = static_cast<size_t>(op), i = static_cast<size_t>(output);
  const std::string label = fmt::format("block {} {}", layer_, kOpNames[o]);
  const bool keep = keeps(op);
  const Tensor t = keep ? kept((*own_)[o][i], dtype, shape, label) : memory_[Purpose::temp].alloc(dtype, shape, label);
  current_[o][i] = t;
  return {t, !(recomputing_ && keep)};
}

Tensor Tape::at(BlockOp op, int output) const {
  const Tensor t = current_[static_cast<size_t>(op)][static_cast<size_t>(output)];
  HLAT_CHECK(recomputing_ && t.defined(), "block {}: output {} of {} was not made", layer_, output, kOpNames[static_cast<size_t>(op)]);
  return t;
}

}  // namespace hlat
