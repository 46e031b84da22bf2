// "Did you mean": the closest name by edit distance, and lists of names whose words are told so where they are none.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>

namespace hlat {

// Insertions, deletions, substitutions and swaps of neighbours that turn a into b.
int edit_distance(std::string_view a, std::string_view b);

// Whether a may be a misspelling of b: at most half of the longer word changes.
bool is_typo_of(std::string_view a, std::string_view b);

// The closest of `names`, or an empty view when none is close.
std::string_view nearest(std::string_view word, std::span<const std::string_view> names);

// Of a word that is none of `names`: "did you mean train?", or "there are train, plan".
std::string alternatives(std::string_view word, std::span<const std::string_view> names);

// The words of an option's "leak,data". UsageError for one that is none of `names`, which are each called `what`: "check of the model".
std::set<std::string> parse_names(std::string_view option, const std::string& list, std::string_view what,
                                  std::span<const std::string_view> names);

}  // namespace hlat
