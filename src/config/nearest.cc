#include "config/nearest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "base/error.h"

namespace hlat {

int edit_distance(std::string_view a, std::string_view b) {
  const size_t width = b.size() + 1;
  std::vector<int> d((a.size() + 1) * width);
  const auto at = [&](size_t i, size_t j) -> int& { return d[i * width + j]; };
  for (size_t i = 0; i <= a.size(); ++i) at(i, 0) = static_cast<int>(i);
  for (size_t j = 0; j <= b.size(); ++j) at(0, j) = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replace = at(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1);
      at(i, j) = std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, replace});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
    }
  }
  return at(a.size(), b.size());
}

bool is_typo_of(std::string_view a, std::string_view b) {
  const size_t longer = std::max(a.size(), b.size());
  // A long word is no misspelling of our short names, and its distance would cost memory.
  return longer <= 64 && 2 * static_cast<size_t>(edit_distance(a, b)) <= longer;
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> names) {
  std::string_view best;
  int best_distance = 0;
  for (const std::string_view name : names) {
    if (!is_typo_of(word, name)) continue;
    const int distance = edit_distance(word, name);
    if (best.empty() || distance < best_distance) {
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

std::string alternatives(std::string_view word, std::span<const std::string_view> names) {
  if (names.empty()) return "there are none";
  const std::string_view best = nearest(word, names);
  return best.empty() ? fmt::format("there are {}", fmt::join(names, ", ")) : fmt::format("did you mean {}?", best);
}

std::set<std::string> parse_names(std::string_view option, const std::string& list, std::string_view what,
                                  std::span<const std::string_view> names) {
  std::set<std::string> found;
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) {
    if (std::find(names.begin(), names.end(), word) == names.end())
      fail<UsageError>("{} {}: '{}' is no {}; {}", option, list, word, what, alternatives(word, names));
    found.insert(word);
  }
  if (found.empty()) fail<UsageError>("{} names no {}; there are {}", option, what, fmt::join(names, ", "));
  return found;
}

}  // namespace hlat
