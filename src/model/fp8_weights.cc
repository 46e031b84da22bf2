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
    if (u.tensors.fp8_seen.defined() && u.counted) ops_.largest(u.tensors.fp8_seen.rows(0, 1), u.tensors.master, true);
  if (measured) {
    ops_.fill(s.step, static_cast<double>(kFp8History));
    ops_.fp8_scales(s.scales, s.history, exchange(s.met), s.limit, s.step);
  }
  round();
  transpose();
}

void Fp8Weights::round() const {
  for (const UpdateUnit& u : params_.units())
    if (params_.fp8(u.param)) ops_.quantize_flat(u.tensors.weight, u.tensors.master, u.tensors.fp8_scale, {});
  gather(&Bucket::weight);
}

void Fp8Weights::gather(Tensor Bucket::*form) const {
  Comm& dp = mesh_.along(Axis::dp);
  if (!zero1_ || dp.size() == 1) return;
  for (const Bucket& b : params_.buckets())
    if (b.fp8) dp.all_gather(b.*form, (b.*form).rows(b.own.begin, b.own.end()));
}

// By the same rule: masters of other holders than the first may differ from its own in their last bits.
void Fp8Weights::hand_out() const {
  if (mesh_.sums_agree(Axis::dp) || !params_.precision().keyed_noise) return;
  for (const ParamId id : params_.fp8_state().params())
    for (const Sharing& s : params_.spec(id).sharing) {
      const Tensor t = wide_ ? params_.wide(id) : params_.weight(id);
      mesh_.along(s.axis).broadcast(t.rows(s.first_row, t.dim(0)), 0);
    }
}

void Fp8Weights::widen() {
  if (!params_.precision().fp8) return;
  HLAT_CHECK(!wide_, "weights of FP8 are widened twice");
  wide_ = true;
  for (const UpdateUnit& u : params_.units()) {
    if (!params_.fp8(u.param)) continue;
    const Tensor& all = params_.buckets()[static_cast<size_t>(u.bucket)].wide;
    ops_.cast(all.rows(u.begin, u.begin + u.tensors.master.numel()), u.tensors.master);
  }
  gather(&Bucket::wide);
  hand_out();
}

// What lies between parameters becomes zero again.
void Fp8Weights::narrow() {
  if (!params_.precision().fp8) return;
  HLAT_CHECK(wide_, "weights of FP8 were not widened");
  wide_ = false;
  for (const Bucket& b : params_.buckets())
    for (const Tensor& t : {b.weight, b.transposed})
      if (b.fp8) ops_.fill(t, 0);
  round();
  hand_out();
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
