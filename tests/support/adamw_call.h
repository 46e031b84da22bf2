// Ops::adamw of one tensor.
#pragma once

#include "ops/ops.h"

namespace hlat {

inline void adamw(Ops& ops, const AdamwTensors& t, const AdamwScalars& s) {
  const AdamwItem item{t, s};
  ops.adamw({&item, 1});
}

}  // namespace hlat
