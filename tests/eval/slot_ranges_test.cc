// Slots are handed out once at a time, and come back as ranges as large as before.
#include "eval/slot_ranges.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"
#include "base/rng.h"

namespace hlat {
namespace {

TEST(SlotRanges, NoSlotIsTakenTwiceAndAllComeBack) {
  constexpr int64_t kSlots = 200;
  RandomStream random({.seed = 3, .stream = hash_name("slots"), .purpose = Noise::data});
  SlotRanges slots(kSlots);
  std::vector<bool> used(kSlots, false);
  struct Taken {
    int64_t first = 0, count = 0;
  };
  std::vector<Taken> taken;
  int64_t refused = 0;
  for (int i = 0; i < 5000; ++i) {
    const auto count = static_cast<int64_t>(1 + random.below(40));
    const std::optional<int64_t> first = random.below(2) == 0 ? slots.take(count) : std::nullopt;
    if (first) {
      taken.push_back({*first, count});
      for (int64_t s = *first; s < *first + count; ++s) {
        ASSERT_FALSE(used.at(static_cast<size_t>(s)));
        used[static_cast<size_t>(s)] = true;
      }
    } else if (!taken.empty()) {
      refused += 1;
      const size_t which = random.below(taken.size());
      const Taken t = taken[which];
      taken.erase(taken.begin() + static_cast<std::ptrdiff_t>(which));
      slots.give_back(t.first, t.count);
      for (int64_t s = t.first; s < t.first + t.count; ++s) used[static_cast<size_t>(s)] = false;
    }
    int64_t free = 0;
    for (const bool u : used) free += u ? 0 : 1;
    ASSERT_EQ(slots.free(), free);
  }
  EXPECT_GT(refused, 100);
  for (const Taken& t : taken) slots.give_back(t.first, t.count);
  EXPECT_EQ(slots.take(kSlots), 0) << "neighbours have become one range again";
}

TEST(SlotRanges, TheSmallestRangeThatHasRoomIsTaken) {
  SlotRanges slots(30);
  EXPECT_EQ(slots.take(10), 0);
  EXPECT_EQ(slots.take(4), 10);
  EXPECT_EQ(slots.take(6), 14);
  slots.give_back(10, 4);
  EXPECT_EQ(slots.take(3), 10) << "not from the ten at the end";
  EXPECT_EQ(slots.take(11), std::nullopt);
}

TEST(SlotRanges, SlotsThatAreFreeCannotComeBack) {
  SlotRanges slots(10);
  EXPECT_THROW(slots.give_back(0, 1), CheckFailed);
  EXPECT_EQ(slots.take(5), 0);
  EXPECT_THROW(slots.give_back(4, 2), CheckFailed);
  EXPECT_THROW(slots.give_back(9, 3), CheckFailed);
  EXPECT_THROW(slots.take(0), CheckFailed);
}

}  // namespace
}  // namespace hlat
