#include "data/reader/field_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "config/nearest.h"

namespace hlat::reader {

std::string field_list(std::string_view wanted, std::vector<std::string> names) {
  constexpr size_t kShown = 12, kLongest = 64;
  for (std::string& name : names) name.resize(std::min(name.size(), kLongest));
  const auto far = [&](const std::string& name) { return is_typo_of(wanted, name) ? edit_distance(wanted, name) : 1000; };
  std::stable_sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) { return far(a) < far(b); });
  const size_t more = names.size() - std::min(names.size(), kShown);
  names.resize(names.size() - more);
  return fmt::format("{}{}", fmt::join(names, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
}

}  // namespace hlat::reader
