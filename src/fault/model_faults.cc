#include "fault/model_faults.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "fault/damage.h"
#include "fault/target.h"

namespace hlat::fault {

namespace {

constexpr double kScaleFactor = 2, kRopeFactor = 100, kLogitsFactor = 8, kEpsFactor = 100;

bool holds(const Bucket& bucket, ParamId id) { return std::find(bucket.params.begin(), bucket.params.end(), id) != bucket.params.end(); }

}  // namespace

bool is_of_model(FaultKind kind) {
  using enum FaultKind;
  return kind == leak || kind == repeat || kind == rope || kind == scale_grad || kind == drop_share || kind == bias_correction ||
         kind == logits || kind == recompute;
}

bool meets_all_ranks(FaultKind kind) {
  using enum FaultKind;
  return kind == spike || kind == leak || kind == repeat || kind == bias_correction || kind == logits || kind == recompute;
}

const FaultSpec* ModelFaults::find(FaultKind kind) const {
  const auto found = std::find_if(lasting_.begin(), lasting_.end(), [&](const Lasting& l) { return l.spec.kind == kind; });
  return found == lasting_.end() ? nullptr : &found->spec;
}

void ModelFaults::begin(const FaultSpec& spec, int64_t step) {
  lasting_.push_back({.spec = spec, .end = spec.steps > 0 ? step + spec.steps : 0});
  if (spec.kind == FaultKind::rope) spoil_rope(spec.factor > 0 ? spec.factor : kRopeFactor);
}

void ModelFaults::at_step(int64_t step) {
  std::erase_if(lasting_, [&](const Lasting& l) { return l.end > 0 && step >= l.end; });
}

bool ModelFaults::in_passes() const {
  using enum FaultKind;
  return find(leak) != nullptr || find(logits) != nullptr || find(recompute) != nullptr;
}

const PlantedAttention* ModelFaults::attention(int64_t layer) const {
  return layer == 0 && find(FaultKind::leak) != nullptr ? &attention_ : nullptr;
}

double ModelFaults::recomputed_eps(int64_t layer, double eps) const {
  return layer == 0 && find(FaultKind::recompute) != nullptr ? kEpsFactor * eps : eps;
}

// Logits are linear in what the output layer gets, so the gradient of that has the same factor.
void ModelFaults::scale_logits(Tensor x) const {
  const FaultSpec* spec = find(FaultKind::logits);
  if (spec != nullptr) multiply(*device_, x.viewed({x.numel()}), spec->factor > 0 ? spec->factor : kLogitsFactor);
}

// As Ops::rope_table makes it, in the table's own type.
void ModelFaults::spoil_rope(double factor) const {
  ModelConfig model = model_;
  model.rope_theta *= factor;
  const RopeFrequencies frequencies = rope_frequencies(model);
  const int64_t width = rope_.dim(1), half = width / 2;
  const auto upload = [&]<class T>(std::vector<T> table) {
    for (int64_t e = 0; e < rope_.numel(); ++e) {
      const int64_t t = e / width, i = e % width;
      const double angle = static_cast<double>(t) * frequencies.at(i % half, width);
      table[static_cast<size_t>(e)] = static_cast<T>(i < half ? std::cos(angle) : std::sin(angle));
    }
    device_->upload(rope_, table.data());
  };
  const auto n = static_cast<size_t>(rope_.numel());
  if (rope_.dtype == DType::f64) return upload(std::vector<double>(n));
  upload(std::vector<float>(n));
}

void ModelFaults::rows(int64_t micro, int64_t seq_len, std::vector<int32_t>& inputs, std::vector<int32_t>& targets) {
  const auto rows = static_cast<int64_t>(inputs.size()) / seq_len;
  if (find(FaultKind::repeat) != nullptr) repeat_rows(micro * rows, seq_len, inputs, targets);
}

// Micro-batches of a step come in order.
void ModelFaults::repeat_rows(int64_t first, int64_t seq_len, std::vector<int32_t>& inputs, std::vector<int32_t>& targets) {
  for (int64_t r = 0; r < static_cast<int64_t>(inputs.size()) / seq_len; ++r) {
    const auto in = inputs.begin() + r * seq_len, out = targets.begin() + r * seq_len;
    if ((first + r) % 2 == 0 || std::ssize(last_inputs_) != seq_len) {
      last_inputs_.assign(in, in + seq_len);
      last_targets_.assign(out, out + seq_len);
    } else {
      std::copy(last_inputs_.begin(), last_inputs_.end(), in);
      std::copy(last_targets_.begin(), last_targets_.end(), out);
    }
  }
}

void ModelFaults::optimizer(Tensor step) const {
  if (find(FaultKind::bias_correction) == nullptr) return;
  AdamwStep values;
  device_->download(&values, step);
  values.correction1 = values.correction2_rsqrt = 1;
  device_->upload(step, &values);
}

void ModelFaults::gradients(size_t bucket) const {
  const FaultSpec* spec = find(FaultKind::scale_grad);
  if (spec == nullptr) return;
  const double factor = spec->factor > 0 ? spec->factor : kScaleFactor;
  const Bucket& b = params_->buckets()[bucket];
  if (spec->tensor.empty()) return multiply(*device_, b.grad, factor);
  const std::optional<ParamId> id = find_tensor(*params_, spec->tensor);
  if (id && holds(b, *id)) multiply(*device_, params_->grad(*id), factor);
}

// Without a tensor given, the first bucket that a backward completes.
void ModelFaults::sums(size_t bucket) const {
  const FaultSpec* spec = find(FaultKind::drop_share);
  if (spec == nullptr) return;
  const Bucket& b = params_->buckets()[bucket];
  const std::optional<ParamId> id = spec->tensor.empty() ? params_->buckets().front().params.front() : find_tensor(*params_, spec->tensor);
  if (id && holds(b, *id)) multiply(*device_, b.grad, 0);
}

}  // namespace hlat::fault
