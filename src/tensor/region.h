// Memory by purpose. Every byte a step uses comes from one of seven Regions, each a stack: allocations are freed
// last-in-first-out by Scope. A Region without a base address only measures; the dry run uses those, and the sizes
// it finds are what the real Regions are given. A real Region never grows: asking for more than planned is a bug.
// Every allocation has an id and a label. What is allocated again at the same place under the same label, as the temporaries of every
// micro-batch are, is the same allocation. Ids follow from the order in which places are first used, so a dry run has those of the run.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tensor/tensor.h"

namespace hlat {

enum class Purpose : uint8_t { weight, grad, optimizer, saved, temp, comm, io };
inline constexpr int kPurposes = 7;
inline constexpr size_t kAlign = 256;  // every allocation starts on this boundary: a cache line and a CUDA sector multiple

std::string_view name_of(Purpose p);

struct RegionEntry {
  std::string label;
  size_t bytes = 0;  // as reserved, padding included
};

struct Allocation {
  std::string label;
  size_t offset = 0;                    // in its region
  std::vector<RegionEntry> parts = {};  // named parts of one tensor, in order; none: it is one thing
};

class Region {
 public:
  Region() = default;  // measures
  Region(Purpose purpose, std::byte* base, size_t capacity) : purpose_(purpose), base_(base), capacity_(capacity), real_(true) {}
  static Region measuring(Purpose purpose);

  // The bytes of parts, where there are any, add up to those of the tensor.
  Tensor alloc(DType dtype, const Shape& shape, std::string_view label, std::vector<RegionEntry> parts = {});

  size_t mark() const { return live_.size(); }
  void release(size_t mark);  // frees everything allocated since mark()

  size_t high_water() const { return high_water_; }
  // What was live when the high-water mark was first reached, parts one by one.
  const std::vector<RegionEntry>& at_peak() const;
  const Allocation& allocation(AllocationId id) const;  // of this region

 private:
  struct Live {
    uint32_t number;  // in allocations_
    size_t bytes;
  };
  uint32_t number_of(std::string_view label, std::vector<RegionEntry> parts);  // of an allocation at the top

  Purpose purpose_ = Purpose::temp;
  std::byte* base_ = nullptr;
  size_t capacity_ = 0;
  bool real_ = false;
  size_t used_ = 0;
  size_t high_water_ = 0;
  std::vector<Live> live_;
  std::vector<Allocation> allocations_;
  std::unordered_multimap<size_t, uint32_t> numbers_;  // by the hash of offset and label
  mutable std::vector<RegionEntry> peak_;
  mutable bool peak_stale_ = false;
};

// Frees what was allocated from a region during its life.
class Scope {
 public:
  explicit Scope(Region& region) : region_(region), mark_(region.mark()) {}
  ~Scope() { region_.release(mark_); }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Region& region_;
  size_t mark_;
};

// Bytes per purpose, and what made up each peak: the result of a dry run and the input of the allocation.
struct MemoryPlan {
  std::array<size_t, kPurposes> bytes{};
  std::array<std::vector<RegionEntry>, kPurposes> peak{};
  size_t total() const;
  size_t operator[](Purpose p) const { return bytes[static_cast<size_t>(p)]; }
};

// The seven regions of one rank.
class Memory {
 public:
  Memory();  // all measuring
  Region& operator[](Purpose p) { return regions_[static_cast<size_t>(p)]; }
  const Region& operator[](Purpose p) const { return regions_[static_cast<size_t>(p)]; }
  void set(Purpose p, Region region) { regions_[static_cast<size_t>(p)] = std::move(region); }
  MemoryPlan high_water() const;
  const Allocation& allocation(AllocationId id) const;

 private:
  std::array<Region, kPurposes> regions_;
};

}  // namespace hlat
