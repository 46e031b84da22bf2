// Attention whose mask leaks one token: query t of a row sees keys 0 to t + 1 instead of 0 to t, as a mask that is built one column too
// wide lets it. For one block alone, or a position would see later tokens through the others. Plain loops on the host, forward and
// backward, for small models on any device.
#pragma once

#include "nn/planted.h"
#include "ops/device.h"

namespace hlat::fault {

class LeakyAttention final : public PlantedAttention {
 public:
  void place(Device& device) { device_ = &device; }  // it must outlive this
  void forward(Tensor out, Tensor lse, Tensor qkv, const AttentionShape& s) const override;
  void backward(Tensor dqkv, Tensor dout, Tensor qkv, const AttentionShape& s) const override;

 private:
  Device* device_ = nullptr;
};

}  // namespace hlat::fault
