// What a plot needs of a curve: few points without losing what stands out, a smooth line, means.
#pragma once

#include <cstddef>

#include "record/run_curves.h"

namespace hlat {

// At most `most` points (at least 8), in their order. All of a curve that has no more; else the first, the last, and of each of equal
// stretches the smallest value, the largest, and one that is not finite where there is one: no spike, dip or gap goes away.
Curve thinned(const Curve& curve, size_t most);

// A mean over a Gaussian of this many steps on both sides, of medians of five values, which a spike of one or two steps does not move; of
// the finite values; NaN where there is none.
Curve smoothed(const Curve& curve, double steps);
double smoothing_steps(const Curve& curve);  // a hundredth of its length, 2 at least

// Means of the finite values over at most `most` equal stretches; the step of a mean is the last of its stretch.
Curve stretch_means(const Curve& curve, size_t most);

double last_finite(const Curve& curve);  // NaN: there is none

}  // namespace hlat
