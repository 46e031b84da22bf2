// Texts as a tree of stretches of tokens: a beginning that several texts share is one stretch, whose keys and values are computed once.
// A text is the stretches from a root down to its leaf, at most `levels` of them. Stretches are in depth-first order, each after its
// parent: while one is worked on, of all those before it only its ancestors are still needed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hlat {

struct Stretch {
  int32_t parent = -1;         // in the list; -1: a root
  int64_t begin = 0, end = 0;  // positions in its texts
  size_t text = 0;             // a text that has these tokens
  int level = 0;               // 0: a root
};

class PrefixTree {
 public:
  using Text = std::span<const int32_t>;

  PrefixTree(std::span<const Text> texts, int levels);

  const std::vector<Stretch>& stretches() const { return stretches_; }
  // The last stretch of a text, which ends where the text ends; -1 for an empty text.
  int32_t leaf(size_t text) const { return leaves_[text]; }

 private:
  size_t shared(size_t a, size_t b) const;  // tokens that the texts at two places of the order have in common
  void build(size_t first, size_t last, int32_t parent, int64_t begin, int level);
  int32_t add(size_t place, int32_t parent, int64_t begin, int64_t end, int level);

  std::span<const Text> texts_;
  int levels_;
  std::vector<size_t> order_;   // texts in lexicographic order
  std::vector<size_t> common_;  // with the next one in that order
  std::vector<Stretch> stretches_;
  std::vector<int32_t> leaves_;
};

// The order in which texts that share a beginning are neighbours.
std::vector<size_t> lexicographic_order(std::span<const PrefixTree::Text> texts);

}  // namespace hlat
