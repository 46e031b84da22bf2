#include "train/update_sample.h"

#include <algorithm>
#include <cmath>

#include "ops/download.h"

namespace hlat {

namespace {

constexpr int64_t kUnits = 8, kElements = 64;  // of a rank, at even distances; of the middle of each

// Steps of a weight: decay and update round once each, and the factor of the decay is rounded.
constexpr double kWeightRounding = 4 * 0x1p-24;
// The update computes with moments that were not rounded yet.
constexpr double kMomentRounding = 0x1p-20, kBf16MomentRounding = 0x1p-6;

Tensor carrier_of(const AdamwTensors& t) { return t.master.defined() ? t.master : t.weight; }

}  // namespace

UpdateSample::UpdateSample(const ParamStore& params, Device& device) : params_(params), device_(device) {
  const auto units = static_cast<int64_t>(params.units().size()), count = std::min(units, kUnits);
  for (int64_t i = 0; i < count; ++i) {
    const auto unit = static_cast<size_t>(i * units / count);
    const Tensor t = carrier_of(params.units()[unit].tensors);
    const int64_t size = std::min(t.numel(), kElements), begin = (t.numel() - size) / 2;
    if (t.dtype != DType::bf16 && size > 0) pieces_.push_back({.unit = unit, .begin = begin, .end = begin + size, .before = {}});
  }
}

std::vector<float> UpdateSample::values(const Tensor& t, const Piece& piece) const {
  return download_f32(device_, t.rows(piece.begin, piece.end));
}

void UpdateSample::take() {
  for (Piece& piece : pieces_) piece.before = values(carrier_of(params_.units()[piece.unit].tensors), piece);
}

std::optional<double> UpdateSample::error(const OptimConfig& optim, double lr, int64_t step) const {
  const auto t = static_cast<double>(step);
  // The constants as the optimizer has them, in f32.
  const auto single = [](double x) { return static_cast<double>(static_cast<float>(x)); };
  const double unbiased1 = 1 - std::pow(single(optim.beta1), t), unbiased2 = 1 - std::pow(single(optim.beta2), t);
  std::optional<double> most;
  for (const Piece& piece : pieces_) {
    const UpdateUnit& unit = params_.units()[piece.unit];
    const double decay = params_.spec(unit.param).decay ? optim.weight_decay : 0;
    const double rounding = unit.tensors.m.dtype == DType::bf16 ? kBf16MomentRounding : kMomentRounding;
    const std::vector<float> after = values(carrier_of(unit.tensors), piece), m = values(unit.tensors.m, piece),
                             v = values(unit.tensors.v, piece);
    double off = 0, right = 0, rounded = 0;  // squares
    for (size_t i = 0; i < after.size(); ++i) {
      const double w = piece.before[i], adam = lr * (m[i] / unbiased1) / (std::sqrt(v[i] / unbiased2) + optim.eps);
      const double moved = static_cast<double>(after[i]) - w, expected = -(adam + lr * decay * w);
      const double least = kWeightRounding * std::max(std::abs(w), std::abs(expected)) + rounding * std::abs(adam);
      off += (moved - expected) * (moved - expected), right += expected * expected, rounded += least * least;
    }
    if (right > 0) most = std::max(most.value_or(0), std::max(0.0, std::sqrt(off) - std::sqrt(rounded)) / std::sqrt(right));
  }
  return most;
}

}  // namespace hlat
