#include "parallel/tp_region.h"

namespace hlat {

Tensor TpRegion::enter(Region& temp, Tensor x, int64_t tokens) const {
  if (!sequence_) return x;
  const Tensor full = temp.alloc(x.dtype, {tokens, x.dim(1)}, "gathered tokens");
  comm_->all_gather(full, x);
  return full;
}

Tensor TpRegion::partial(Region& temp, Tensor y, int64_t tokens) const {
  return sequence_ ? temp.alloc(y.dtype, {tokens, y.dim(1)}, "partial sums") : y;
}

void TpRegion::leave(Tensor y, Tensor partial) const {
  if (sequence_)
    comm_->reduce_scatter(y, partial);
  else
    comm_->all_reduce(y);
}

}  // namespace hlat
