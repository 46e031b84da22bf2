// Which slots of a cache are free: ranges of consecutive slots are taken and given back in any order.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace hlat {

class SlotRanges {
 public:
  explicit SlotRanges(int64_t slots);

  // The first of `count` consecutive slots, from the smallest free range that has them; nothing when none has.
  std::optional<int64_t> take(int64_t count);
  void give_back(int64_t first, int64_t count);
  int64_t free() const { return free_; }  // of all ranges

 private:
  std::map<int64_t, int64_t> ranges_;  // first slot -> slots; no two touch
  int64_t slots_, free_;
};

}  // namespace hlat
