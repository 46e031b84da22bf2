// Where in the model of a rank a fault of numbers strikes.
#pragma once

#include <optional>
#include <string>

#include "config/fault_spec.h"
#include "parallel/mesh.h"
#include "param/param_store.h"

namespace hlat::fault {

struct Target {
  std::string tensor;
  size_t bucket = 0;
  int64_t element = 0;  // of the bucket
};

std::optional<ParamId> find_tensor(const ParamStore& params, const std::string& name);

// The tensor that the fault names, else one by the seed; an element of it by the seed.
Target choose_target(const FaultSpec& spec, uint64_t seed, int64_t step, const Mesh& mesh, const ParamStore& params);

// The axis that the fault names, else the first of dp, tp and pp along which this rank has peers.
Axis choose_axis(const FaultSpec& spec, const Mesh& mesh);

}  // namespace hlat::fault
