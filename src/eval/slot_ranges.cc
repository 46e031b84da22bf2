#include "eval/slot_ranges.h"

#include <iterator>

#include "base/error.h"

namespace hlat {

SlotRanges::SlotRanges(int64_t slots) : slots_(slots), free_(slots) {
  if (slots > 0) ranges_[0] = slots;
}

std::optional<int64_t> SlotRanges::take(int64_t count) {
  HLAT_CHECK(count > 0, "{} slots", count);
  auto best = ranges_.end();
  for (auto range = ranges_.begin(); range != ranges_.end(); ++range)
    if (range->second >= count && (best == ranges_.end() || range->second < best->second)) best = range;
  if (best == ranges_.end()) return std::nullopt;
  const auto [first, size] = *best;
  ranges_.erase(best);
  if (size > count) ranges_[first + count] = size - count;
  free_ -= count;
  return first;
}

void SlotRanges::give_back(int64_t first, int64_t count) {
  auto next = ranges_.lower_bound(first);
  HLAT_CHECK(count > 0 && first >= 0 && first + count <= slots_ && (next == ranges_.end() || first + count <= next->first),
             "slots {} to {} of {} are free already", first, first + count, slots_);
  free_ += count;
  if (next != ranges_.end() && next->first == first + count) {
    count += next->second;
    next = ranges_.erase(next);
  }
  if (next != ranges_.begin()) {
    const auto before = std::prev(next);
    HLAT_CHECK(before->first + before->second <= first, "slots from {} on are free already", first);
    if (before->first + before->second == first) {
      before->second += count;
      return;
    }
  }
  ranges_[first] = count;
}

}  // namespace hlat
