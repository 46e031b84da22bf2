// Attention whose mask leaks one token: query t of a row sees keys 0 to t + 1 instead of 0 to t, as a mask that is built one column too
// wide lets it. Of the first block alone, so that a position sees the token after its own and no later one. Plain loops on the host,
// forward and backward, for small models on any device.
#pragma once

#include "nn/planted_attention.h"
#include "ops/device.h"

namespace hlat::fault {

class LeakyAttention final : public PlantedAttention {
 public:
  void place(Device& device) { device_ = &device; }  // it must outlive this
  void set(bool leaks) { leaks_ = leaks; }

  bool meets(int64_t layer) const override { return leaks_ && layer == 0; }
  void forward(Tensor out, Tensor lse, Tensor qkv, const AttentionShape& s) const override;
  void backward(Tensor dqkv, Tensor dout, Tensor qkv, const AttentionShape& s) const override;

 private:
  Device* device_ = nullptr;
  bool leaks_ = false;
};

}  // namespace hlat::fault
