// What a rank holds of the model's tensors, as numbers on the host, with their places in the whole tensors: the runs of elements that the
// rank updates, so that each element whose optimizer state is sharded is there once.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ops/device.h"
#include "param/param_store.h"

namespace hlat {

struct LocalPart {
  std::string tensor;
  ElementMap map;
  std::vector<float> values;
  bool counted = true;  // no other rank counts these elements in global norms
  bool decays = true;
  int64_t whole = 0;  // elements of the whole tensor
};

using TensorOfUnit = std::function<Tensor(const AdamwTensors&)>;
Tensor updated_tensor(const AdamwTensors& t);  // the master, or the weight where there is none
Tensor gradient_tensor(const AdamwTensors& t);

std::vector<LocalPart> local_parts(const ParamStore& params, Device& device, const TensorOfUnit& tensor_of);

// Hashes of the bits of all that the rank would save and of its gradients: "moment1 layers.0.mlp.down" and so on.
struct StateHash {
  std::string what;
  uint64_t hash = 0;
  bool operator==(const StateHash&) const = default;
};
std::vector<StateHash> state_hashes(const ParamStore& params, Device& device);
std::vector<StateHash> gradient_hashes(const ParamStore& params, Device& device);
uint64_t hash_of(Device& device, const Tensor& t);

// What differs between two lists of the same rank; empty: nothing.
std::vector<std::string> differences(const std::vector<StateHash>& a, const std::vector<StateHash>& b);

}  // namespace hlat
