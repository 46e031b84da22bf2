#include "health/health.h"

#include <algorithm>

#include "base/failure_word.h"
#include "health/fingerprint.h"

namespace hlat {

namespace {

// What all ranks along an axis hold: over dp everything, over others what the sharing lists name.
std::vector<Replicas::Item> items_of(const ParamStore& params, Axis axis) {
  std::vector<Replicas::Item> items;
  for (ParamId id = 0; id < params.size(); ++id) {
    if (axis == Axis::dp) items.push_back({.param = id});
    for (const Sharing& s : params.spec(id).sharing)
      if (s.axis == axis) items.push_back({.param = id, .first_row = s.first_row});
  }
  return items;
}

[[noreturn]] void differ(int64_t step, const std::string& words) {
  throw FailedStep(FailureKind::health, step, fmt::format("step {}: {}", step, words));
}

}  // namespace

Health::Health(const ParamStore& params, const Mesh& mesh, bool zero1, int64_t every, Ops& ops, Device& device, Region& io)
    : params_(params), mesh_(mesh), ops_(ops), device_(device), every_(mesh.shape().ranks() > 1 ? every : 0), zero1_(zero1) {
  if (every_ == 0) return;
  for (int i = 0; i < kAxes; ++i) {
    const auto axis = static_cast<Axis>(i);
    std::vector<Replicas::Item> items = items_of(params, axis);
    if (axis != Axis::dp && !items.empty() && params.precision().keyed_noise)
      shared_.emplace_back(mesh, axis, params, std::move(items), io);
  }
  dp_.emplace(mesh, Axis::dp, params, items_of(params, Axis::dp), io);
  sums_.emplace(mesh, params, io);
  if (shared_.empty() && dp_->items().empty()) every_ = 0;
}

void Health::before_reduction(size_t bucket) const {
  const std::vector<ParamId>& inside = params_.buckets()[bucket].params;
  for (const Replicas& r : shared_)
    for (size_t i = 0; i < r.items().size(); ++i) {
      const Replicas::Item& item = r.items()[i];
      if (std::find(inside.begin(), inside.end(), item.param) != inside.end())
        r.take(ops_, i, Replicas::shared_rows(item, params_.grad(item.param)));
    }
  sums_->before(ops_, bucket);
}

void Health::compare_gradients(const Replicas& r, int64_t step) const {
  if (const auto words = r.difference(device_, "gradients"))
    differ(step, fmt::format("{}; the weights are those of step {}", *words, step - 1));
}

void Health::check_gradients(int64_t step) const {
  for (const Replicas& r : shared_) compare_gradients(r, step);
  if (!zero1_ && params_.precision().keyed_noise) {
    for (size_t i = 0; i < dp_->items().size(); ++i) dp_->take(ops_, i, params_.grad(dp_->items()[i].param));
    compare_gradients(*dp_, step);
  }
  if (const auto wrong = sums_->difference(ops_, device_))
    differ(step, fmt::format("{}; the weights are those of step {}", *wrong, step - 1));
}

std::string Health::compared() const {
  std::vector<std::string> parts;
  for (const Replicas& r : shared_)
    if (!r.items().empty()) parts.push_back(fmt::format("gradients and weights of {} tensors over {}", r.items().size(), r.axis()));
  const bool drifts = !params_.precision().keyed_noise;
  if (dp_ && !dp_->items().empty() && !drifts)
    parts.push_back(
        fmt::format("{}weights of {} tensors and the sums of gradients over dp", zero1_ ? "" : "gradients and ", dp_->items().size()));
  if (dp_ && !dp_->items().empty() && drifts) parts.emplace_back("the sums of gradients over dp");
  if (params_.precision().fp8 && !drifts) parts.emplace_back("scales of FP8 over tp and dp");
  if (drifts) parts.emplace_back("no weights: precision.keyed_noise=false lets replicas drift apart");
  return fmt::format("{}", fmt::join(parts, ", "));
}

void Health::check_weights(int64_t step) const {
  if (!params_.precision().keyed_noise) return;
  const auto check = [&](const Replicas& r) {
    for (size_t i = 0; i < r.items().size(); ++i) r.take(ops_, i, Replicas::shared_rows(r.items()[i], params_.weight(r.items()[i].param)));
    if (const auto words = r.difference(device_, "weights")) differ(step, *words);
  };
  for (const Replicas& r : shared_) check(r);
  check(*dp_);
  check_scales(step);
}

// One scale of a layer's operand for all ranks of a stage.
void Health::check_scales(int64_t step) const {
  if (!params_.precision().fp8) return;
  const Fp8State& fp8 = params_.fp8_state();
  std::vector<float> values(static_cast<size_t>(fp8.scales.numel() + fp8.history.numel()));
  device_.download(values.data(), fp8.scales);
  device_.download(values.data() + fp8.scales.numel(), fp8.history);
  const uint64_t own = fingerprint(values.data(), values.size() * sizeof(float));
  for (const Axis axis : {Axis::tp, Axis::dp}) {
    Comm& comm = mesh_.along(axis);
    if (comm.size() == 1) continue;
    std::vector<uint64_t> all(static_cast<size_t>(comm.size()));
    all[static_cast<size_t>(comm.rank())] = own;
    comm.host().all_gather_bytes(all.data(), sizeof(own));
    if (const auto who = describe_difference(all, mesh_.ranks_along(axis)))
      differ(step, fmt::format("scales of FP8 differ between {} ranks: {}", comm.name(), *who));
  }
}

void Health::check_state(int64_t step) const {
  if (every_ == 0) return;
  check_weights(step);
  if (!params_.precision().keyed_noise || zero1_ || dp_->items().empty()) return;
  const auto check = [&](Tensor Bucket::*kind, const char* what) {
    const std::vector<Bucket>& buckets = params_.buckets();
    if (std::ranges::none_of(buckets, [&](const Bucket& b) { return (b.*kind).defined(); })) return;
    for (const Bucket& b : buckets)
      for (const ParamId id : b.params) {
        HLAT_CHECK(dp_->items()[static_cast<size_t>(id)].param == id, "item {} over dp is another parameter", id);
        const bool own = (b.*kind).defined();  // else its weight again, in place of a master
        const int64_t begin = params_.offset(id) - (own ? b.own.begin : 0);
        dp_->take(ops_, static_cast<size_t>(id), (own ? b.*kind : b.weight).rows(begin, begin + params_.weight(id).numel()));
      }
    if (const auto words = dp_->difference(device_, what)) differ(step, *words);
  };
  check(&Bucket::master, "master weights");
  check(&Bucket::m, "first moments");
  check(&Bucket::v, "second moments");
}

}  // namespace hlat
