// "Did you mean": the closest name by edit distance.
#pragma once

#include <span>
#include <string_view>

namespace hlat {

// Insertions, deletions, substitutions and swaps of neighbours that turn a into b.
int edit_distance(std::string_view a, std::string_view b);

// Whether a may be a misspelling of b: at most half of the longer word changes.
bool is_typo_of(std::string_view a, std::string_view b);

// The closest of `names`, or an empty view when none is close.
std::string_view nearest(std::string_view word, std::span<const std::string_view> names);

}  // namespace hlat
