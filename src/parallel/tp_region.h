// The edges of a tensor-parallel region. Between regions a rank holds either all tokens, the same on every rank, or with
// sequence parallelism its share of them. `enter` makes all tokens for column-split work; `leave` sums row-split
// partial products. Each is the other's backward:
//
//                 sequence parallel          otherwise        one rank
//   enter         all-gather over tokens     nothing          nothing
//   leave         reduce-scatter             all-reduce       nothing
#pragma once

#include "comm/comm.h"
#include "tensor/region.h"

namespace hlat {

class TpRegion {
 public:
  TpRegion(Comm& comm, bool sequence) : comm_(&comm), sequence_(sequence && comm.size() > 1) {}

  Comm& comm() const { return *comm_; }

  // Tokens this rank holds between regions.
  int64_t rows(int64_t tokens) const { return sequence_ ? part_of(tokens, comm_->rank(), comm_->size()).count : tokens; }

  int64_t first_row(int64_t tokens) const { return sequence_ ? part_of(tokens, comm_->rank(), comm_->size()).begin : 0; }
  bool sequence() const { return sequence_; }

  // All tokens of x: x itself, or gathered into temp.
  Tensor enter(Region& temp, Tensor x, int64_t tokens) const;
  // Where the partial products that add up to y go: y itself, or room for all tokens in temp.
  Tensor partial(Region& temp, Tensor y, int64_t tokens) const;
  // y = the sum over ranks of what was written to `partial`.
  void leave(Tensor y, Tensor partial) const;

 private:
  Comm* comm_;
  bool sequence_;
};

}  // namespace hlat
