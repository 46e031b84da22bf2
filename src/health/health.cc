#include "health/health.h"

#include <array>

namespace hlat {

namespace {

// What the sharing lists name, by Axis.
std::array<std::vector<Replicas::Item>, kAxes> shared_items(const ParamStore& params) {
  std::array<std::vector<Replicas::Item>, kAxes> items;
  for (ParamId id = 0; id < params.size(); ++id)
    for (const Sharing& s : params.spec(id).sharing) items[static_cast<size_t>(s.axis)].push_back({id, s.first_row});
  return items;
}

std::vector<Replicas::Item> all_items(const ParamStore& params) {
  std::vector<Replicas::Item> items;
  for (ParamId id = 0; id < params.size(); ++id) items.push_back({.param = id});
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
  const auto items = shared_items(params);
  for (size_t axis = 0; axis < items.size(); ++axis)
    if (!items[axis].empty()) shared_.emplace_back(mesh, static_cast<Axis>(axis), params, items[axis], io);
  dp_.emplace(mesh, Axis::dp, params, all_items(params), io);
  sums_.emplace(mesh, params, io);
  if (shared_.empty() && dp_->items().empty()) every_ = 0;
}

void Health::before_reduction(size_t bucket) const {
  for (const Replicas& r : shared_)
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
  for (const Replicas& r : shared_) compare_gradients(r, step);
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
  for (const Replicas& r : shared_) check(r);
  check(*dp_);
}

}  // namespace hlat
