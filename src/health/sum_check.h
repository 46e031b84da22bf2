// A check of the sums of gradients over dp that needs no second copy of them: the sum over all elements of what the ranks
// put in must be the sum over all elements of what came out, but for rounding. It also sees a sum that is wrong in the
// same way on every rank, and sums of which each rank keeps only its shard (ZeRO-1).
//
// A bucket is cut into parameter shares: one parameter's elements in one rank's share of the bucket. For one of n elements, x[i, r] the
// gradient of rank r of S and y[i] the stored sum, the error is E = sum y[i] - sum x[i, r], both sums in f64.
// Each addition in f32 errs by at most u |partial sum|, u = 2^-24 (2^-53 in f64), and by Cauchy and Schwarz
// |partial sum|^2 <= S sum_r x[i, r]^2. Storing y in bf16 errs by at most v |y|, v = 2^-8. Rounding to nearest is as
// often up as down, so the errors are independent terms c_k around zero, and by Hoeffding
//   P(|E| > t sqrt(C)) <= 2 exp(-t^2 / 2),  C = sum c_k^2 <= S (S - 1) u^2 sum x^2 + v^2 sum y^2  (v = 0 unless bf16).
// With t = 8 that is 3e-14 for a share. In f32, two ranks and a million elements of size s the bound is 0.001 s: one wrong
// element is seen. In bf16 it is sqrt(n) / 32 times the size of y: one wrong element in small tensors only, in large ones
// what goes wrong for many elements, such as a message lost or taken twice.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ops/device.h"
#include "parallel/mesh.h"
#include "param/param_store.h"

namespace hlat {

// The most that rounding explains: t sqrt(C) of n elements summed over `ranks`, given the sums of squares before and after.
double rounding_bound(DType dtype, int ranks, int64_t n, double squares_before, double squares_after);

class SumCheck {
 public:
  SumCheck(const Mesh& mesh, const ParamStore& params, Region& io);

  void before(Ops& ops, size_t bucket) const;  // its gradients are complete but for the sum over dp
  // After all sums. Collective. Words on the first share whose sums do not agree; sums that are not finite are no matter
  // of this check.
  std::optional<std::string> difference(Ops& ops, Device& device) const;

 private:
  struct ParamShare {
    ParamId param = -1;
    size_t bucket = 0;
    int64_t begin = 0, end = 0;  // elements of the bucket
    int owner = 0;               // whose share it is, as a rank of the group
  };
  enum Column { kBefore, kBeforeSq, kAfter, kAfterSq, kColumns };
  void measure(Ops& ops, size_t share, Column column) const;  // the sum into this column, squares into the next

  Comm& dp_;
  const std::vector<int>& ranks_;  // of the dp group, as ranks of the mesh
  const ParamStore& params_;
  std::vector<ParamShare> shares_;
  Tensor sums_;  // (shares, kColumns) f64, flat
};

}  // namespace hlat
