// A curve of a run: values by step, and what a plot needs of it: few points without losing what stands out, a smooth line, means.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hlat {

struct Curve {
  std::vector<int64_t> step;  // ascending
  std::vector<double> value;  // NaN: not finite or not known

  size_t size() const { return step.size(); }
  bool has_values() const;  // one that is finite
  void add(int64_t s, double v) { step.push_back(s), value.push_back(v); }
  void cut_from(int64_t first);  // leaves out this step and all behind it
};

// At most `most` points (at least 8), in their order. All of a curve that has no more; else the first, the last, and of each of equal
// stretches the smallest value, the largest, and one that is not finite where there is one: no spike, dip or gap goes away.
Curve thinned(const Curve& curve, size_t most);

// A mean over a Gaussian of this many steps on both sides, of the finite values; NaN where there is none.
Curve smoothed(const Curve& curve, double steps);
double smoothing_steps(const Curve& curve);  // a hundredth of its length, 2 at least

// Means of the finite values over at most `most` equal stretches; the step of a mean is the last of its stretch.
Curve stretch_means(const Curve& curve, size_t most);

double last_finite(const Curve& curve);    // NaN: there is none
double middle_finite(const Curve& curve);  // the median; NaN likewise

}  // namespace hlat
