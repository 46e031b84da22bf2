#include "config/alarm_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/nearest.h"

namespace hlat {

namespace {

std::string_view without_blanks(std::string_view word) {
  const size_t first = word.find_first_not_of(" \t"), last = word.find_last_not_of(" \t");
  return first == std::string_view::npos ? std::string_view() : word.substr(first, last - first + 1);
}

std::string no_such_rule(std::string_view name) {
  if (name == "all" || name == "none") return fmt::format("{} stands alone, without other names", name);
  if (name.empty()) return "a name is missing; give all, none, or names with commas between them";
  return fmt::format("no rule is called {}; {}", name, alternatives(name, kAlarmNames));
}

}  // namespace

AlarmSet parse_alarms(std::string_view text, std::vector<std::string>& problems) {
  const std::string_view whole = without_blanks(text);
  if (whole == "all") return AlarmSet().set();
  if (whole == "none") return {};
  AlarmSet rules;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view name = without_blanks(text.substr(begin, end - begin));
    const auto at = std::find(kAlarmNames.begin(), kAlarmNames.end(), name);
    if (at == kAlarmNames.end())
      problems.push_back(no_such_rule(name));
    else
      rules.set(static_cast<size_t>(at - kAlarmNames.begin()));
    begin = end + 1;
  }
  return rules;
}

}  // namespace hlat
