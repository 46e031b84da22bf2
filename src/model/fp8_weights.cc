#include "model/fp8_weights.h"

#include <utility>

namespace hlat {

Fp8Weights::Fp8Weights(const ParamStore& params, const Mesh& mesh, bool zero1, int64_t tokens, Ops& ops, Region& io)
    : params_(params), mesh_(mesh), zero1_(zero1), tokens_(tokens), ops_(ops) {
  if (!params.precision().fp8) return;
  const int64_t tp = mesh.along(Axis::tp).size(), dp = mesh.along(Axis::dp).size(), units = params.fp8_state().units();
  if (tp > 1) of_tp_ = io.alloc(DType::f64, {tp, units, kFp8Seen}, "FP8 values seen by tp ranks");
  if (dp > 1) of_all_ = io.alloc(DType::f64, {dp * tp, units, kFp8Seen}, "FP8 values seen by all ranks");
}

Tensor Fp8Weights::exchange(const Tensor& met) const {
  const int64_t units = met.dim(0);
  Tensor all = met.viewed({1, units, kFp8Seen});
  for (const auto& [axis, room] : {std::pair{Axis::tp, of_tp_}, std::pair{Axis::dp, of_all_}}) {
    if (!room.defined()) continue;
    const Tensor gathered = room.viewed({room.dim(0), units, kFp8Seen});
    mesh_.along(axis).all_gather(gathered, all);
    all = gathered;
  }
  return all;
}

void Fp8Weights::make(Fp8Start start) {
  if (!params_.precision().fp8) return;
  const Fp8State& s = params_.fp8_state();
  const bool measured = start != Fp8Start::saved;
  uncalibrated_ = start == Fp8Start::measured;
  if (measured) s.start(ops_, tokens_);
  ops_.fill(s.met, 0);
  for (const UpdateUnit& u : params_.units())
    if (u.tensors.fp8_seen.defined()) ops_.largest(u.tensors.fp8_seen.rows(0, 1), u.tensors.master, true);
  if (measured) {
    ops_.fill(s.step, static_cast<double>(kFp8History));
    ops_.fp8_scales(s.scales, s.history, exchange(s.met), s.limit, s.step);
  }
  for (const UpdateUnit& u : params_.units())
    if (u.tensors.fp8_seen.defined()) ops_.quantize_flat(u.tensors.weight, u.tensors.master, u.tensors.fp8_scale, {});
  for (const Bucket& b : params_.buckets())
    if (b.fp8 && zero1_ && mesh_.along(Axis::dp).size() > 1)
      mesh_.along(Axis::dp).all_gather(b.weight, b.weight.rows(b.own.begin, b.own.end()));
  transpose();
}

void Fp8Weights::begin_step() const {
  if (params_.precision().fp8) ops_.fill(params_.fp8_state().met_in_passes(), 0);
}

// Weights have been met by the update before, or by make; inputs and gradients in the passes of the step.
void Fp8Weights::set_scales(Tensor clip, int64_t step) {
  if (!params_.precision().fp8) return;
  const Fp8State& s = params_.fp8_state();
  uncalibrated_ = false;
  ops_.fill(s.step, static_cast<double>(step));
  ops_.fp8_scales(s.scales, s.history, exchange(s.met), s.limit, s.step, clip, s.met_in_update());
}

void Fp8Weights::take_in(int64_t step) const {
  if (!params_.precision().fp8) return;
  const Fp8State& s = params_.fp8_state();
  const int64_t units = s.units_in_passes();
  ops_.fill(s.step, static_cast<double>(step));
  ops_.fp8_scales(s.scales.rows(0, units), s.history.rows(0, units), exchange(s.met_in_passes()), s.limit.rows(0, units), s.step);
}

void Fp8Weights::begin_calibration() const { params_.fp8_state().start_passes(ops_, tokens_); }

// In the history's place of the step before, so that the step adds to it.
void Fp8Weights::measure_passes(int64_t step) const {
  const Fp8State& s = params_.fp8_state();
  ops_.fill(s.history.rows(0, s.units_in_passes()), 0);
  take_in(step > 1 ? step - 1 : kFp8History);
}

void Fp8Weights::transpose() const {
  if (!params_.precision().fp8) return;
  for (const ParamId id : params_.fp8_state().params()) ops_.transpose(params_.transposed(id), params_.weight(id));
}

}  // namespace hlat
