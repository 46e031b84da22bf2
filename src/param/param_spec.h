// What layers declare: each parameter's name, global shape, the slice of it this rank holds, and how its gradient is
// made whole. A ParamBuilder knows this rank's place in the mesh, so a layer only says along what it is split.
#pragma once

#include <string>
#include <vector>

#include "parallel/mesh.h"
#include "parallel/slice.h"

namespace hlat {

struct ParamSpec {
  std::string name;
  Slice slice;
  double init_std = 0;    // 0: starts at one (norms)
  bool decay = true;      // weight decay applies
  int group = 0;          // gradients of a group are complete at the same time
  bool tp_whole = false;  // every tp rank holds all of it
  // Replicas that each saw a share of the work; their gradients are summed before anything else:
  bool tp_partial_grad = false;  // all tp ranks, each its own tokens (norms under sequence parallelism)
  int64_t kv_shared_from = -1;   // local rows from here on: the kv group, each its own query heads
  bool ends_shared = false;      // first and last stage: a tied embedding
};

using ParamId = int32_t;

class ParamBuilder {
 public:
  ParamBuilder(const Mesh& mesh, bool sequence) : mesh_(mesh), sequence_(sequence && mesh.shape().tp > 1) {}

  const Mesh& mesh() const { return mesh_; }
  int next_group() { return ++group_; }  // parameters from here on complete later or earlier than those before
  Part tp_part(int64_t n) const { return part_of(n, mesh_.coord().tp, mesh_.shape().tp); }

  ParamId add(ParamSpec spec) {
    spec.group = group_;
    specs_.push_back(std::move(spec));
    return static_cast<ParamId>(specs_.size() - 1);
  }
  // Held whole by every tp rank.
  ParamId add_replicated(std::string name, const Shape& shape, bool decay) {
    return add({.name = std::move(name),
                .slice = Slice::whole(shape, mesh_.coord().tp == 0),
                .decay = decay,
                .tp_whole = true,
                .tp_partial_grad = sequence_});
  }
  ParamId add_split(std::string name, const Shape& shape, int dim, std::vector<SlicePart> parts, double std) {
    return add({.name = std::move(name), .slice = Slice::of(shape, dim, std::move(parts)), .init_std = std});
  }
  ParamSpec& spec(ParamId id) { return specs_[static_cast<size_t>(id)]; }
  std::vector<ParamSpec> take() { return std::move(specs_); }

 private:
  const Mesh& mesh_;
  bool sequence_;
  int group_ = 0;
  std::vector<ParamSpec> specs_;
};

}  // namespace hlat
