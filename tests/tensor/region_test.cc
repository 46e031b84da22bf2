// Regions: an allocation has an id and a label that are the same in a measuring and in a real region, and parts that a plan lists.
#include "tensor/region.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <type_traits>

#include "support/host_memory.h"
#include "tensor/columns.h"

namespace hlat {
namespace {

static_assert(std::is_trivially_copyable_v<Tensor>);

// What a step does to a region: something that stays, and temporaries that come again at the same place.
std::vector<AllocationId> ids_of_a_step(Region& region) {
  std::vector<AllocationId> ids = {region.alloc(DType::f32, {10}, "stays").allocation};
  for (int micro = 0; micro < 3; ++micro) {
    const Scope scope(region);
    ids.push_back(region.alloc(DType::f32, {100 - micro}, "a").allocation);
    ids.push_back(region.alloc(DType::bf16, {5}, "b").allocation);
  }
  const Scope scope(region);
  ids.push_back(region.alloc(DType::f32, {100}, "c").allocation);
  ids.push_back(region.alloc(DType::bf16, {5}, "b").allocation);
  return ids;
}

TEST(Region, TheSamePlaceAndLabelAreTheSameAllocation) {
  Region region = Region::measuring(Purpose::saved);
  const std::vector<AllocationId> ids = ids_of_a_step(region);
  const AllocationId stays = ids[0], a = ids[1], b = ids[2], c = ids[7];
  EXPECT_EQ(ids, (std::vector<AllocationId>{stays, a, b, a, b, a, b, c, b}));
  EXPECT_EQ((std::set<AllocationId>{0, stays, a, b, c}.size()), 5u);
  EXPECT_EQ(region.allocation(stays).label, "stays");
  EXPECT_EQ(region.allocation(c).label, "c");
  EXPECT_EQ(region.allocation(c).offset, kAlign);
}

TEST(Region, IdsOfADryRunAreThoseOfTheRun) {
  HostMemory host;
  Region measuring = Region::measuring(Purpose::temp), real = host.region(Purpose::temp, size_t{1} << 12),
         other = Region::measuring(Purpose::io);
  const std::vector<AllocationId> ids = ids_of_a_step(measuring);
  EXPECT_EQ(ids, ids_of_a_step(real));
  for (const AllocationId id : ids_of_a_step(other)) EXPECT_EQ(std::count(ids.begin(), ids.end(), id), 0) << "an id names its region";
  EXPECT_THROW(other.allocation(ids[0]), CheckFailed);
}

TEST(Region, ViewsLieInTheAllocationOfTheirTensor) {
  Memory memory;
  const Tensor t = memory[Purpose::grad].alloc(DType::f32, {6, 8}, "matrix");
  for (const Tensor& view : {t, t.rows(1, 3), columns(t, 2, 5), t.viewed({48}), t.rows(2, 4).viewed({4, 4}), t.viewed({3})})
    EXPECT_EQ(memory.allocation(view.allocation).label, "matrix") << view.str();
  EXPECT_EQ(t.viewed({2, 4}).shape, Shape({2, 4}));
  EXPECT_THROW(t.viewed({49}), CheckFailed);
  EXPECT_THROW(columns(t, 2, 5).viewed({3}), CheckFailed) << "rows with gaps have no other shape";
  EXPECT_THROW(memory.allocation(Tensor{}.allocation), CheckFailed);
  EXPECT_THROW(memory.allocation(t.allocation + 1), CheckFailed);
}

TEST(Region, APlanListsThePartsOfAnAllocation) {
  Memory memory;
  Region& region = memory[Purpose::weight];
  region.alloc(DType::f32, {1}, "alone");
  const Tensor t = region.alloc(DType::bf16, {384}, "bucket", {{"x", 512}, {"y", 256}});
  EXPECT_THROW(region.alloc(DType::bf16, {384}, "short", {{"x", 512}}), CheckFailed);
  EXPECT_EQ(memory.allocation(t.allocation).label, "bucket");
  const MemoryPlan plan = memory.high_water();
  std::string listed;
  for (const RegionEntry& e : plan.peak[static_cast<size_t>(Purpose::weight)]) listed += fmt::format("{} {}, ", e.label, e.bytes);
  EXPECT_EQ(listed, "alone 256, x 512, y 256, ");
  EXPECT_EQ(region.high_water(), 1024u);
}

}  // namespace
}  // namespace hlat
