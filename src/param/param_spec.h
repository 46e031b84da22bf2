// What layers declare: each parameter's name, global shape, the slice of it this rank holds, and which other ranks hold
// the same rows. Gradient sums, replica checks and the counting of global norms walk that list of sharing; none of them knows what an
// axis stands for. A ParamBuilder knows this rank's place in the mesh, so a layer only says along what it is split and shared.
#pragma once

#include <string>
#include <vector>

#include "parallel/mesh.h"
#include "parallel/slice.h"

namespace hlat {

enum class SharedGrad : uint8_t {
  copy,     // all holders compute the same gradient
  partial,  // each holder saw a share of the work: their gradients are summed before anything else
};

// Rows from first_row on are held by all ranks along an axis, in equal slices.
struct Sharing {
  Axis axis;
  SharedGrad grad = SharedGrad::copy;
  int64_t first_row = 0;  // local
  // What follows from the mesh:
  int place = 0;      // of this rank among the holders; the first of them counts the rows in global norms
  bool late = false;  // pipeline stages have their parts of the gradient at different times: summed after the last action of a step
};

struct ParamSpec {
  std::string name;
  Slice slice;
  double init_std = 0;  // 0: starts at one (norms)
  bool decay = true;    // weight decay applies
  int group = 0;        // gradients of a group are complete at the same time
  bool fp8 = false;     // products with it are FP8 where the policy has such
  std::vector<Sharing> sharing = {};

  // Whether its gradient is complete only after the last action of a step.
  bool late() const;
  // This many local elements, from the first on, count in global norms here; the rest is counted by another holder.
  int64_t counted() const;
};

using ParamId = int32_t;

class ParamBuilder {
 public:
  ParamBuilder(const Mesh& mesh, bool sequence) : mesh_(mesh), sequence_(sequence) {}

  const Mesh& mesh() const { return mesh_; }
  int next_group() { return ++group_; }  // parameters from here on complete later or earlier than those before
  Part tp_part(int64_t n) const { return part_of(n, mesh_.coord().tp, mesh_.shape().tp); }

  ParamId add(ParamSpec spec) {
    spec.group = group_;
    specs_.push_back(std::move(spec));
    return static_cast<ParamId>(specs_.size() - 1);
  }
  // Held whole by every tp rank, each of which sees its own tokens under sequence parallelism.
  ParamId add_replicated(std::string name, const Shape& shape, bool decay);
  ParamId add_split(std::string name, const Shape& shape, int dim, std::vector<SlicePart> parts, double std) {
    return add({.name = std::move(name), .slice = Slice::of(shape, dim, std::move(parts)), .init_std = std});
  }
  // Of a linear layer: both dimensions must be multiples of kFp8Grain in the whole model, or its products stay in the type of activations.
  void multiply_in_fp8(ParamId id);
  // Its rows from first_row on are on all ranks along the axis. A group of one shares nothing.
  void share(ParamId id, Axis axis, SharedGrad grad, int64_t first_row = 0);
  std::vector<ParamSpec> take() { return std::move(specs_); }

 private:
  const Mesh& mesh_;
  bool sequence_;
  int group_ = 0;
  std::vector<ParamSpec> specs_;
};

}  // namespace hlat
