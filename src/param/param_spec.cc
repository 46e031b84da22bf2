#include "param/param_spec.h"

#include <algorithm>
#include <utility>

#include "ops/fp8.h"

namespace hlat {

bool ParamSpec::late() const {
  return std::any_of(sharing.begin(), sharing.end(), [](const Sharing& s) { return s.late; });
}

int64_t ParamSpec::counted() const {
  Shape row = slice.local();
  int64_t rows = std::exchange(row.dim[0], 1);
  for (const Sharing& s : sharing)
    if (s.place > 0) rows = std::min(rows, s.first_row);
  return rows * row.numel();
}

ParamId ParamBuilder::add_replicated(std::string name, const Shape& shape, bool decay) {
  const ParamId id = add({.name = std::move(name), .slice = Slice::whole(shape), .decay = decay});
  share(id, Axis::tp, sequence_ ? SharedGrad::partial : SharedGrad::copy);
  return id;
}

void ParamBuilder::multiply_in_fp8(ParamId id) {
  ParamSpec& spec = specs_[static_cast<size_t>(id)];
  const Shape& shape = spec.slice.global;
  spec.fp8 = fp8_fits(shape[0], shape[1]);
}

void ParamBuilder::share(ParamId id, Axis axis, SharedGrad grad, int64_t first_row) {
  const Comm& group = mesh_.along(axis);
  if (group.size() == 1) return;
  const bool late = grad == SharedGrad::partial && mesh_.crosses_stages(axis);
  specs_[static_cast<size_t>(id)].sharing.push_back(
      {.axis = axis, .grad = grad, .first_row = first_row, .place = group.rank(), .late = late});
}

}  // namespace hlat
