#include "health/health.h"

namespace hlat {

namespace {

// The ranks of the mesh that differ from this one at most in one coordinate: it takes `part.count` values from part.begin on.
std::vector<int> members(const Mesh& mesh, int MeshCoord::*axis, const Part& part, int stride = 1) {
  std::vector<int> ranks;
  MeshCoord c = mesh.coord();
  for (int64_t i = 0; i < part.count; ++i) {
    c.*axis = static_cast<int>(part.begin + i * stride);
    ranks.push_back(rank_of(c, mesh.shape()));
  }
  return ranks;
}

template <class Keep>
std::vector<Replicas::Item> items_of(const ParamStore& params, const Keep& first_row) {
  std::vector<Replicas::Item> items;
  for (ParamId id = 0; id < params.size(); ++id)
    if (const int64_t row = first_row(params.spec(id)); row >= 0) items.push_back({id, row});
  return items;
}

}  // namespace

Health::Health(const ParamStore& params, const Mesh& mesh, bool zero1, int64_t every, Ops& ops, Device& device, Region& io)
    : params_(params),
      ops_(ops),
      device_(device),
      every_(mesh.shape().ranks() > 1 ? every : 0),
      zero1_(zero1),
      bucket_of_(static_cast<size_t>(params.size())) {
  if (every_ == 0) return;
  for (size_t b = 0; b < params.buckets().size(); ++b)
    for (const ParamId id : params.buckets()[b].params) bucket_of_[static_cast<size_t>(id)] = b;
  const MeshShape& shape = mesh.shape();
  const auto stages = mesh.along(Axis::ends).size() == 2 ? members(mesh, &MeshCoord::pp, {0, 2}, shape.pp - 1)
                                                         : members(mesh, &MeshCoord::pp, {mesh.coord().pp, 1});
  partial_.emplace_back(mesh.along(Axis::tp), members(mesh, &MeshCoord::tp, {0, shape.tp}), params,
                        items_of(params, [](const ParamSpec& s) { return s.tp_whole ? 0 : -1; }), io);
  partial_.emplace_back(mesh.along(Axis::kv), members(mesh, &MeshCoord::tp, mesh.heads().kv_ranks), params,
                        items_of(params, [](const ParamSpec& s) { return s.kv_shared_from; }), io);
  partial_.emplace_back(mesh.along(Axis::ends), stages, params, items_of(params, [](const ParamSpec& s) { return s.ends_shared ? 0 : -1; }),
                        io);
  const std::vector<int> replicas = members(mesh, &MeshCoord::dp, {0, shape.dp});
  dp_.emplace(mesh.along(Axis::dp), replicas, params, items_of(params, [](const ParamSpec&) { return 0; }), io);
  sums_.emplace(mesh.along(Axis::dp), replicas, params, io);
  bool alone = dp_->items().empty();
  for (const Replicas& r : partial_) alone = alone && r.items().empty();
  if (alone) every_ = 0;
}

void Health::before_reduction(size_t bucket) const {
  for (const Replicas& r : partial_)
    for (size_t i = 0; i < r.items().size(); ++i) {
      const Replicas::Item& item = r.items()[i];
      if (bucket_of_[static_cast<size_t>(item.param)] == bucket) r.take(ops_, i, Replicas::shared_rows(item, params_.grad(item.param)));
    }
  sums_->before(ops_, bucket);
}

void Health::take_weights(const Replicas& r) const {
  for (size_t i = 0; i < r.items().size(); ++i) r.take(ops_, i, Replicas::shared_rows(r.items()[i], params_.weight(r.items()[i].param)));
}

void Health::compare_gradients(const Replicas& r, int64_t step) const {
  if (const auto words = r.difference(device_, "gradients")) fail("step {}: {}; the weights are those of step {}", step, *words, step - 1);
}

void Health::check_gradients(int64_t step) const {
  for (const Replicas& r : partial_) compare_gradients(r, step);
  if (!zero1_) {
    for (size_t i = 0; i < dp_->items().size(); ++i) dp_->take(ops_, i, params_.grad(dp_->items()[i].param));
    compare_gradients(*dp_, step);
  }
  if (const auto wrong = sums_->difference(ops_, device_)) fail("step {}: {}; the weights are those of step {}", step, *wrong, step - 1);
}

void Health::check_weights(int64_t step) const {
  const auto check = [&](const Replicas& r) {
    take_weights(r);
    if (const auto words = r.difference(device_, "weights")) fail("step {}: {}", step, *words);
  };
  for (const Replicas& r : partial_) check(r);
  check(*dp_);
}

}  // namespace hlat
