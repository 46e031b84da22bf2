// The most that rounding explains of the difference between a sum over S ranks and the exact one, by how the sum was taken
// (comm/comm.h, Summation). x[i, r] is element i of rank r, t[i] the exact sum, y[i] the stored one; q is the sum of all x^2.
//
// Rounded once. Each addition in f32 errs by at most u |partial sum|, u = 2^-24 (2^-53 in f64), and by Cauchy and Schwarz
// |partial sum|^2 <= S sum_r x[i, r]^2. Storing y in bf16 errs by at most v |y|, v = 2^-8. Rounding to nearest is as often up as down, so
// the error E of the sum over n elements is one of independent terms c_k around zero, and by Hoeffding
//   P(|E| > h sqrt(C)) <= 2 exp(-h^2 / 2),  C = sum c_k^2 <= S (S - 1) u^2 q + v^2 sum y^2  (v = 0 unless bf16).
// With h = 8 that is 3e-14. f32 sums of a library, in whatever order, have the same additions and the same bound.
//
// bf16 rounded at each of the S - 1 additions, which may form any tree: a ring is a chain. An addition that completes the sum of k ranks
// errs by at most v |p|, p = (k / S) t + d: the mean's part, and what the k ranks deviate from the mean.
// - The mean's part. Where ranks have nearly equal terms, their roundings are alike and add up: no help from chance. A chain has the
//   largest sums of k, 2 + ... + S, of all trees, so |error| <= v ((S + 1) / 2 - 1 / S) |t|: half of t at S = 256.
// - The deviations. They are noise of the batches, so the ranks may be taken in any order: mean d^2 = k (S - k) / (S (S - 1)) q[i] at
//   most, q[i] = sum_r x[i, r]^2. Over a tree this is largest for two chains of half the ranks: (S - 2) (2 S + 9) / (12 S) q[i] bounds it.
//   Noise makes the roundings independent: their squares add up, to a mean square of 0.2 of that sum times v^2; 4 times its root is
//   allowed.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace hlat {

// Rounded once: of the sum over n elements, given the sums of squares before and after.
double rounding_bound(DType dtype, int ranks, int64_t n, double squares_before, double squares_after);

// bf16 rounded at each addition: of the root of the sum over n elements of (y - t)^2, given the sums of x^2 over ranks and of t^2.
double chained_rounding_bound(int ranks, int64_t n, double squares_before, double squares_of_sums);

}  // namespace hlat
