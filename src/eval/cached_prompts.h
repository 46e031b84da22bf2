// Where the keys of generated texts lie: which beginnings their prompts share, and which slots of the cache hold what. Shared stretches are
// placed with the first text that needs them and given back with the last. Texts have to be placed in order().
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "eval/prefix_tree.h"
#include "eval/slot_ranges.h"
#include "model/kv_passes.h"

namespace hlat {

// A stretch that several prompts share. Its keys are computed in parts, in any pass before or with those of the texts that go on from it.
struct SharedStretch {
  int64_t begin = 0, end = 0;  // positions
  int64_t read = 0;            // the first whose keys are not computed
  int64_t slot = -1;           // of the first position; -1: not placed
  int64_t texts = 0;           // that have not ended
};

struct PlacedText {
  std::vector<SharedStretch*> shared = {};  // its beginning, in order
  std::vector<TokenPass::Run> runs = {};    // of the shared stretches, and its own at last
  int64_t own_begin = 0, own_slots = 0;
};

class CachedPrompts {
 public:
  // `lengths`: tokens of each text whose keys are kept, its prompt's included; at most `slots`.
  CachedPrompts(std::span<const PrefixTree::Text> prompts, std::vector<int64_t> lengths, int64_t slots);

  const std::vector<size_t>& order() const { return order_; }  // so that the texts of one beginning follow each other
  // Takes slots for a text; nothing while there are too few. With no other text placed there always are enough.
  std::optional<PlacedText> place(size_t text);
  void give_back(const PlacedText& placed);  // the text has ended

 private:
  bool place_shared(const std::vector<SharedStretch*>& path);
  void drop(SharedStretch& stretch);

  std::vector<int64_t> lengths_;
  SlotRanges slots_;
  std::vector<size_t> order_;
  std::vector<SharedStretch> stretches_;             // those of the tree; also ones that only one text has, which are not placed
  std::vector<std::vector<SharedStretch*>> shared_;  // by text, from its first token on
  int64_t placed_ = 0;                               // texts
};

}  // namespace hlat
