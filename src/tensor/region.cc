#include "tensor/region.h"

#include <numeric>

namespace hlat {

namespace {

// An id is the purpose, counted from 1, and the allocation's number in that region.
constexpr int kNumberBits = 28;
constexpr uint32_t kNumbers = 1u << kNumberBits;

}  // namespace

std::string_view name_of(Purpose p) {
  constexpr std::array<std::string_view, kPurposes> names = {"weight", "grad", "optimizer", "saved", "temp", "comm", "io"};
  return names[static_cast<size_t>(p)];
}

Region Region::measuring(Purpose purpose) {
  Region r;
  r.purpose_ = purpose;
  return r;
}

Tensor Region::alloc(DType dtype, const Shape& shape, std::string_view label, std::vector<RegionEntry> parts) {
  HLAT_CHECK(shape.rank > 0 && shape.numel() >= 0, "{} {}", label, shape.str());
  const size_t bytes = (static_cast<size_t>(shape.numel()) * size_of(dtype) + kAlign - 1) / kAlign * kAlign;
  const size_t named =
      std::accumulate(parts.begin(), parts.end(), size_t{0}, [](size_t sum, const RegionEntry& e) { return sum + e.bytes; });
  HLAT_CHECK(parts.empty() || named == bytes, "{}: parts of {} bytes in {}", label, named, bytes);
  HLAT_CHECK(!real_ || used_ + bytes <= capacity_,
             "region {}: {} needs {} bytes, {} of {} are in use: the step asked for more than its plan", name_of(purpose_), label, bytes,
             used_, capacity_);
  Tensor t = Tensor::contiguous(base_ == nullptr ? nullptr : base_ + used_, dtype, shape);
  const uint32_t number = number_of(label, std::move(parts));
  t.allocation = (static_cast<uint32_t>(purpose_) + 1) << kNumberBits | number;
  used_ += bytes;
  live_.push_back({number, bytes});
  if (used_ > high_water_) {
    high_water_ = used_;
    peak_stale_ = true;
  }
  return t;
}

uint32_t Region::number_of(std::string_view label, std::vector<RegionEntry> parts) {
  const size_t hash = std::hash<std::string_view>{}(label) ^ used_ * 0x9e3779b97f4a7c15u;
  const auto [begin, end] = numbers_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    const Allocation& a = allocations_[it->second];
    if (a.offset == used_ && a.label == label) return it->second;
  }
  const auto number = static_cast<uint32_t>(allocations_.size());
  HLAT_CHECK(number < kNumbers, "{} allocations in region {}", number, name_of(purpose_));
  allocations_.push_back({std::string(label), used_, std::move(parts)});
  numbers_.emplace(hash, number);
  return number;
}

const Allocation& Region::allocation(AllocationId id) const {
  const uint32_t number = id % kNumbers;
  HLAT_CHECK(id >> kNumberBits == static_cast<uint32_t>(purpose_) + 1 && number < allocations_.size(), "allocation {:#x} in region {}", id,
             name_of(purpose_));
  return allocations_[number];
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
    peak_.clear();
    for (const Live& l : live_) {
      const Allocation& a = allocations_[l.number];
      if (a.parts.empty())
        peak_.push_back({a.label, l.bytes});
      else
        peak_.insert(peak_.end(), a.parts.begin(), a.parts.end());
    }
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

const Allocation& Memory::allocation(AllocationId id) const {
  const uint32_t purpose = (id >> kNumberBits) - 1;
  HLAT_CHECK(purpose < kPurposes, "allocation {:#x}", id);
  return regions_[purpose].allocation(id);
}

}  // namespace hlat
