// The machine's own ceilings, measured through the same op the model uses: the denominator of MFU where no data sheet
// is trusted.
#pragma once

#include "ops/device.h"

namespace hlat {

// Best rate over a few repetitions of a square matmul, FLOP/s.
double measure_matmul_rate(Backend& backend, DType dtype);

// The ceiling for a compute type. bf16 on a CPU without bf16 instructions runs on the f32 kernel, whose rate then holds.
double measure_peak(Backend& backend, DType compute);

}  // namespace hlat
