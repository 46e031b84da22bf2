#include "tensor/region.h"

#include <numeric>

namespace hlat {

std::string_view name_of(Purpose p) {
  constexpr std::array<std::string_view, kPurposes> names = {"weight", "grad", "optimizer", "saved", "temp", "comm", "io"};
  return names[static_cast<size_t>(p)];
}

Region Region::measuring(Purpose purpose) {
  Region r;
  r.purpose_ = purpose;
  return r;
}

Tensor Region::alloc(DType dtype, const Shape& shape, std::string_view label) {
  HLAT_CHECK(shape.rank > 0 && shape.numel() >= 0, "{} {}", label, shape.str());
  const size_t bytes = (static_cast<size_t>(shape.numel()) * size_of(dtype) + kAlign - 1) / kAlign * kAlign;
  HLAT_CHECK(!real_ || used_ + bytes <= capacity_,
             "region {}: {} needs {} bytes, {} of {} are in use: the step asked for more than its plan", name_of(purpose_), label, bytes,
             used_, capacity_);
  std::byte* data = base_ == nullptr ? nullptr : base_ + used_;
  used_ += bytes;
  live_.push_back({std::string(label), bytes});
  if (used_ > high_water_) {
    high_water_ = used_;
    peak_stale_ = true;
  }
  return Tensor::contiguous(data, dtype, shape);
}

void Region::release(size_t mark) {
  HLAT_CHECK(mark <= live_.size(), "mark {} of {} in region {}", mark, live_.size(), name_of(purpose_));
  at_peak();
  while (live_.size() > mark) {
    used_ -= live_.back().bytes;
    live_.pop_back();
  }
}

const std::vector<RegionEntry>& Region::at_peak() const {
  if (peak_stale_ && used_ == high_water_) {
    peak_ = live_;
    peak_stale_ = false;
  }
  return peak_;
}

size_t MemoryPlan::total() const { return std::accumulate(bytes.begin(), bytes.end(), size_t{0}); }

Memory::Memory() {
  for (size_t i = 0; i < regions_.size(); ++i) regions_[i] = Region::measuring(static_cast<Purpose>(i));
}

MemoryPlan Memory::high_water() const {
  MemoryPlan plan;
  for (size_t i = 0; i < regions_.size(); ++i) {
    plan.bytes[i] = regions_[i].high_water();
    plan.peak[i] = regions_[i].at_peak();
  }
  return plan;
}

}  // namespace hlat
