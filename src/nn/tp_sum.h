// The way out of a tensor-parallel region: partial products of all ranks add up to y. They are written and added up in the type of the
// policy's sums over tp, and rounded to that of activations afterwards.
//
//   TpSum sum(ctx, y);               in a scope of the caller
//   ... write sum.partial() ...      (tokens, D): this rank's products for all tokens
//   sum.finish(place);
#pragma once

#include "nn/ctx.h"

namespace hlat {

class TpSum {
 public:
  // room: memory of (tokens, D) in the type of y that partial products may take, as they would y itself.
  TpSum(Ctx& ctx, Tensor y, Tensor room = {});

  Tensor partial() const { return partial_; }
  void finish(const StorePlace& place);

 private:
  Ctx& ctx_;
  Tensor y_, room_, partial_;
};

}  // namespace hlat
