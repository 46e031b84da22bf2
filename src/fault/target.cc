#include "fault/target.h"

#include <algorithm>
#include <vector>

#include "base/rng.h"

namespace hlat::fault {

namespace {

// Without replicas over dp a flipped bit can be seen only in what ranks of another axis hold too.
std::vector<ParamId> candidates(const Mesh& mesh, const ParamStore& params) {
  std::vector<ParamId> all, shared;
  for (ParamId id = 0; id < params.size(); ++id) {
    all.push_back(id);
    if (!params.spec(id).sharing.empty()) shared.push_back(id);
  }
  return mesh.shape().dp > 1 || shared.empty() ? all : shared;
}

}  // namespace

std::optional<ParamId> find_tensor(const ParamStore& params, const std::string& name) {
  for (ParamId id = 0; id < params.size(); ++id)
    if (params.spec(id).name == name) return id;
  return std::nullopt;
}

Target choose_target(const FaultSpec& spec, uint64_t seed, int64_t step, const Mesh& mesh, const ParamStore& params) {
  RandomStream stream({.seed = seed, .stream = hash_name(spec.text()), .purpose = Noise::sample, .step = static_cast<uint32_t>(step)});
  const std::vector<ParamId> from = candidates(mesh, params);
  const ParamId drawn = from[stream.below(from.size())];
  const ParamId id = spec.tensor.empty() ? drawn : find_tensor(params, spec.tensor).value_or(drawn);
  const ParamSpec& param = params.spec(id);
  const Tensor t = params.weight(id);
  const bool replicas = mesh.shape().dp > 1 || param.sharing.empty();
  const int64_t first = replicas ? 0 : param.sharing.front().first_row * (t.numel() / t.dim(0));
  const int64_t element = first + static_cast<int64_t>(stream.below(static_cast<uint64_t>(t.numel() - first)));
  const auto& buckets = params.buckets();
  for (size_t b = 0; b < buckets.size(); ++b)
    if (std::find(buckets[b].params.begin(), buckets[b].params.end(), id) != buckets[b].params.end())
      return {.tensor = param.name, .bucket = b, .element = params.offset(id) + element};
  fail("{} is in no bucket", param.name);
}

Axis choose_axis(const FaultSpec& spec, const Mesh& mesh) {
  for (const Axis axis : {Axis::dp, Axis::tp, Axis::pp})
    if (spec.axis.empty() ? mesh.along(axis).size() > 1 : name_of(axis) == spec.axis) return axis;
  return Axis::dp;
}

}  // namespace hlat::fault
