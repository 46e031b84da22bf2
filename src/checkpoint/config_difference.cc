#include "checkpoint/config_difference.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace hlat {
namespace {

using Json = nlohmann::ordered_json;

// Objects are walked, lists are one value.
void compare(const Json* a, const Json* b, const std::string& key, std::vector<ConfigDifference>& out) {
  const auto is_object = [](const Json* j) { return j != nullptr && j->is_object(); };
  if (!is_object(a) && !is_object(b)) {
    const std::string left = a == nullptr ? "" : json_text(*a), right = b == nullptr ? "" : json_text(*b);
    if (left != right) out.push_back({key, left, right});
    return;
  }
  const auto member = [&](const Json* j, const std::string& name) -> const Json* {
    if (!is_object(j)) return nullptr;
    const auto found = j->find(name);
    return found == j->end() ? nullptr : &*found;
  };
  const std::string prefix = key.empty() ? "" : key + ".";
  if (is_object(a))
    for (const auto& [name, value] : a->items()) compare(&value, member(b, name), prefix + name, out);
  if (is_object(b))
    for (const auto& [name, value] : b->items())
      if (member(a, name) == nullptr) compare(nullptr, &value, prefix + name, out);
}

}  // namespace

std::vector<ConfigDifference> config_differences(const std::string& a, const std::string& b) {
  const Json left = Json::parse(a, nullptr, false), right = Json::parse(b, nullptr, false);
  std::vector<ConfigDifference> out;
  compare(&left, &right, "", out);
  return out;
}

}  // namespace hlat
