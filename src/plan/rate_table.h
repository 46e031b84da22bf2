// How fast an op of a given size is, from the measured rows of a machine. Rates of products and attention are interpolated between their
// nearest rows in the logarithm of every size (modified Shepard weights: exact at a row, local, continuous); those of other ops between
// the two rows next to their bytes.
#pragma once

#include <optional>

#include "plan/machine.h"
#include "trace/step_trace.h"

namespace hlat {

enum class RateBasis : uint8_t {
  measured,    // rows of this op, type and form
  other_form,  // rows of the same type, but of other forms or outputs of a product
  other_type,  // rows of an op of the other type; of a product of FP8 the other FP8 type
};

struct TableRate {
  double rate = 0;  // per second: FLOPs of a product or an attention, bytes of another op
  RateBasis basis = RateBasis::measured;
};

// nullopt: the table has nothing for it. compute: type of a step's activations.
std::optional<TableRate> table_rate(const Rates& rates, const TracedOp& op, DType compute);

}  // namespace hlat
