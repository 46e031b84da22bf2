#include "selfcheck/local_parts.h"

#include "base/rng.h"
#include "ops/download.h"

namespace hlat {

Tensor updated_tensor(const AdamwTensors& t) { return t.master.defined() ? t.master : t.weight; }
Tensor gradient_tensor(const AdamwTensors& t) { return t.grad; }

std::vector<LocalPart> local_parts(const ParamStore& params, Device& device, const TensorOfUnit& tensor_of) {
  std::vector<LocalPart> parts;
  for (const UpdateUnit& u : params.units()) {
    const ParamSpec& spec = params.spec(u.param);
    parts.push_back({.tensor = spec.name,
                     .map = u.map,
                     .values = download_f32(device, tensor_of(u.tensors)),
                     .counted = u.counted,
                     .decays = spec.decay,
                     .whole = spec.slice.global.numel()});
  }
  return parts;
}

uint64_t hash_of(Device& device, const Tensor& t) {
  std::string bytes(t.bytes(), '\0');
  device.download(bytes.data(), t);
  return hash_name(bytes);
}

std::vector<StateHash> state_hashes(const ParamStore& params, Device& device) {
  std::vector<StateHash> all;
  for (ParamId id = 0; id < params.size(); ++id) all.push_back({"the weight " + params.spec(id).name, hash_of(device, params.weight(id))});
  for (const UpdateUnit& u : params.units()) {
    const std::string& name = params.spec(u.param).name;
    all.push_back({"the first moment of " + name, hash_of(device, u.tensors.m)});
    all.push_back({"the second moment of " + name, hash_of(device, u.tensors.v)});
    if (u.tensors.master.defined()) all.push_back({"the master of " + name, hash_of(device, u.tensors.master)});
  }
  return all;
}

std::vector<StateHash> gradient_hashes(const ParamStore& params, Device& device) {
  std::vector<StateHash> all;
  for (const UpdateUnit& u : params.units())
    all.push_back({"the gradient of " + params.spec(u.param).name, hash_of(device, u.tensors.grad)});
  return all;
}

std::vector<std::string> differences(const std::vector<StateHash>& a, const std::vector<StateHash>& b) {
  HLAT_CHECK(a.size() == b.size(), "{} and {} hashes of one rank", a.size(), b.size());
  std::vector<std::string> what;
  for (size_t i = 0; i < a.size(); ++i)
    if (!(a[i] == b[i])) what.push_back(a[i].what);
  return what;
}

}  // namespace hlat
