#include "train/grad_sync.h"

#include <algorithm>

namespace hlat {

namespace {

// The type in which buckets are summed over dp. What is rounded stochastically afterwards is summed in f32.
DType sum_type(const Precision& p) {
  if (p.grad == DType::f64) return p.grad;
  return p.grad == DType::bf16 && p.gradients == Rounding::stochastic ? DType::f32 : p.dp_sum;
}

}  // namespace

GradSync::GradSync(const ParamStore& params, const Mesh& mesh, bool zero1, uint64_t seed, Ops& ops, Region& region)
    : params_(params),
      mesh_(mesh),
      zero1_(zero1),
      groups_in_(params.buckets().size()),
      seed_(seed),
      ops_(ops),
      queue_(mesh.along(Axis::dp)) {
  const DType type = sum_type(params.precision());
  int64_t most = 0;
  for (const Bucket& b : params.buckets()) most = std::max(most, b.grad.numel());
  if (type != params.precision().grad && mesh.along(Axis::dp).size() > 1)
    converted_ = region.alloc(type, {most}, "gradients that are summed");
  int groups = 0;
  for (ParamId id = 0; id < params.size(); ++id) groups = std::max(groups, params.spec(id).group + 1);
  members_.resize(static_cast<size_t>(groups));
  buckets_of_.resize(static_cast<size_t>(groups));
  for (size_t b = 0; b < params.buckets().size(); ++b)
    for (const ParamId id : params.buckets()[b].params) {
      const auto g = static_cast<size_t>(params.spec(id).group);
      members_[g].push_back(id);
      if (!buckets_of_[g].empty() && buckets_of_[g].back() == b) continue;
      buckets_of_[g].push_back(b);
      ++groups_in_[b];
    }
}

void GradSync::begin_step(int64_t step, const Health* health) {
  step_ = step;
  pending_ = groups_in_;
  health_ = health;
}

void GradSync::group_done(int group) {
  const auto g = static_cast<size_t>(group);
  if (buckets_of_[g].empty()) return;
  for (const size_t bucket : buckets_of_[g]) {
    HLAT_CHECK(pending_[bucket] > 0, "group {} is complete twice", group);
    --pending_[bucket];
  }
  if (params_.buckets()[buckets_of_[g].front()].late) return;
  for (const ParamId id : members_[g]) sum_partial(id);
  for (const size_t bucket : buckets_of_[g])
    if (pending_[bucket] == 0) reduce(bucket);
}

void GradSync::sum_partial(ParamId id) const {
  const Tensor grad = params_.grad(id);
  for (const Sharing& s : params_.spec(id).sharing)
    if (s.grad == SharedGrad::partial) mesh_.along(s.axis).all_reduce(grad.rows(s.first_row, grad.dim(0)));
}

void GradSync::all_done() {
  for (size_t g = 0; g < members_.size(); ++g)
    if (!members_[g].empty()) group_done(static_cast<int>(g));
}

void GradSync::reduce(size_t bucket) {
  if (faults_ != nullptr) faults_->gradients(bucket);
  if (health_ != nullptr) health_->before_reduction(bucket);
  if (faults_ != nullptr) faults_->sums(bucket);
  if (mesh_.along(Axis::dp).size() == 1) return;
  if (converted_.defined()) return reduce_converted(bucket);
  const Bucket& b = params_.buckets()[bucket];
  queue_.submit([grad = b.grad, own = b.own, zero1 = zero1_](Comm& dp) {
    if (zero1)
      dp.reduce_scatter(grad.rows(own.begin, own.end()), grad);
    else
      dp.all_reduce(grad);
  });
}

// What comes back is what this rank updates; the rest of its gradients is read by nobody.
void GradSync::reduce_converted(size_t bucket) {
  const Bucket& b = params_.buckets()[bucket];
  const Tensor sums = converted_.rows(0, b.grad.numel());
  ops_.cast(sums, b.grad);
  queue_.submit([sums, own = b.own, zero1 = zero1_](Comm& dp) {
    if (zero1)
      dp.reduce_scatter(sums.rows(own.begin, own.end()), sums);
    else
      dp.all_reduce(sums);
  });
  queue_.wait_all();
  const Precision& p = params_.precision();
  for (const UpdateUnit& u : params_.units()) {
    if (u.bucket != static_cast<int>(bucket)) continue;
    const NoiseKey key{.seed = seed_,
                       .stream = noise_stream(p, params_.spec(u.param).name + " gradient sum", rank_of(mesh_.coord(), mesh_.shape())),
                       .purpose = Noise::cast,
                       .step = static_cast<uint32_t>(step_)};
    ops_.cast(u.tensors.grad, sums.rows(u.begin, u.begin + u.tensors.grad.numel()), p.gradients, key, u.map);
  }
}

void GradSync::finish() {
  for (size_t i = 0; i < pending_.size(); ++i) {
    const Bucket& b = params_.buckets()[i];
    if (!b.late) {
      HLAT_CHECK(pending_[i] == 0, "bucket {}: {} groups are not complete", i, pending_[i]);
      continue;
    }
    for (const ParamId id : b.params) sum_partial(id);
    reduce(i);
  }
  queue_.wait_all();
}

void GradSync::gather(int bucket) {
  if (!zero1_ || mesh_.along(Axis::dp).size() == 1) return;
  const Bucket& b = params_.buckets()[static_cast<size_t>(bucket)];
  queue_.submit([weight = b.weight, own = b.own](Comm& dp) { dp.all_gather(weight, weight.rows(own.begin, own.end())); });
}

}  // namespace hlat
