#include "eval/prefix_tree.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace hlat {

namespace {
// A stretch of its own is one more segment of the attention, and one more place where keys are looked for.
constexpr int64_t kShortestShared = 8;
constexpr int64_t kSavedTokens = 32;
}  // namespace

std::vector<size_t> lexicographic_order(std::span<const PrefixTree::Text> texts) {
  std::vector<size_t> order(texts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::lexicographical_compare(texts[a].begin(), texts[a].end(), texts[b].begin(), texts[b].end());
  });
  return order;
}

PrefixTree::PrefixTree(std::span<const Text> texts, int levels) : texts_(texts), levels_(levels), leaves_(texts.size(), -1) {
  HLAT_CHECK(levels >= 1, "a tree of {} levels", levels);
  order_ = lexicographic_order(texts);
  for (size_t i = 0; i + 1 < order_.size(); ++i) common_.push_back(shared(order_[i], order_[i + 1]));
  if (!order_.empty()) build(0, order_.size(), -1, 0, 0);
}

size_t PrefixTree::shared(size_t a, size_t b) const {
  const Text &x = texts_[a], &y = texts_[b];
  return static_cast<size_t>(std::mismatch(x.begin(), x.end(), y.begin(), y.end()).first - x.begin());
}

int32_t PrefixTree::add(size_t place, int32_t parent, int64_t begin, int64_t end, int level) {
  stretches_.push_back({.parent = parent, .begin = begin, .end = end, .text = order_[place], .level = level});
  return static_cast<int32_t>(stretches_.size()) - 1;
}

// The texts at places [first, last) of the order, below `parent`, which has their tokens up to `begin`.
void PrefixTree::build(size_t first, size_t last, int32_t parent, int64_t begin, int level) {
  const auto length = [&](size_t place) { return static_cast<int64_t>(texts_[order_[place]].size()); };
  if (last - first == 1) {
    leaves_[order_[first]] = length(first) > begin ? add(first, parent, begin, length(first), level) : parent;
    return;
  }
  const auto least = static_cast<int64_t>(
      *std::min_element(common_.begin() + static_cast<std::ptrdiff_t>(first), common_.begin() + static_cast<std::ptrdiff_t>(last) - 1));
  const bool same = length(first) == least && length(last - 1) == least;  // all are one text: the last level may hold it
  const bool worth = same || (least - begin >= kShortestShared && (least - begin) * static_cast<int64_t>(last - first - 1) >= kSavedTokens);
  if (least > begin && worth && (level + 1 < levels_ || same)) {
    parent = add(first, parent, begin, least, level);
    begin = least;
    ++level;
  }
  // Split where neighbours share no more than all do; once nothing more can be shared, into single texts.
  const bool on = level + 1 < levels_;
  for (size_t from = first; from < last;) {
    size_t to = from + 1;
    while (on && to < last && common_[to - 1] > static_cast<size_t>(least)) ++to;
    build(from, to, parent, begin, level);
    from = to;
  }
}

}  // namespace hlat
