// A check of the sums of gradients over dp that needs no second copy of them. It also sees a sum that is wrong in the same way on every
// rank, and sums of which each rank keeps only its shard (ZeRO-1). A bucket is cut into parameter shares: one parameter's elements in
// one rank's share of the bucket. What a share is held against depends on how the group sums; the bounds are those of rounding.h.
//
// f32, or bf16 rounded once: the sum over all elements of what the ranks put in must be that of what came out. In f32, two ranks and a
// million elements of size s the bound is 0.001 s: one wrong element is seen. In bf16 it is sqrt(n) / 32 times the size of y: one wrong
// element in small tensors only, in large ones what goes wrong for many elements, such as a message lost or taken twice.
// bf16 rounded at each addition (NCCL): at 256 ranks a sound sum may err by half of itself, and such sums over all elements tell nothing.
// Here samples, the first 32 of every 64 Ki elements, are summed in f32 as well, and elements are compared: a lost or doubled sum is seen,
// or the loss of half the ranks; not that of one rank's term among 256, nor anything from 512 ranks on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ops/device.h"
#include "parallel/mesh.h"
#include "param/param_store.h"

namespace hlat {

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
  struct Verdict {
    double error = 0, bound = 0;
    std::string words;
  };
  enum Column { kBefore, kBeforeSq, kAfter, kAfterSq, kColumns };
  static constexpr int64_t kSampled = 32, kSampledFrom = int64_t{1} << 16;  // elements

  void add_shares(ParamId id, size_t bucket, int owner, Part elements);
  // What is looked at of a share: its sum into this column, its squares into the next; where samples are kept, they are copied too.
  void measure(Ops& ops, size_t share, Column column) const;
  void clear(Ops& ops, size_t share, Column column) const;
  Tensor sample_of(size_t share, Column column) const;
  Verdict compare_sums(const ParamShare& share, const double* sums) const;
  Verdict compare_samples(const ParamShare& share, const double* sums, const float* samples) const;

  Comm& dp_;
  const std::vector<int>& ranks_;  // of the dp group, as ranks of the mesh
  const ParamStore& params_;
  bool sampled_;
  std::vector<ParamShare> shares_;
  Tensor sums_;     // (shares, kColumns) f64, flat
  Tensor samples_;  // (shares, 2, kSampled) f32, flat: before and after; undefined unless sampled
};

}  // namespace hlat
