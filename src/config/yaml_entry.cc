#include "config/yaml_entry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace hlat {
namespace {

std::string map_text(const YAML::Node& node) {
  std::vector<std::string> pairs;
  for (const auto& item : node) {
    const auto text = [](const YAML::Node& n) { return n.IsScalar() ? n.Scalar() : kind_words(n); };
    pairs.push_back(fmt::format("{}: {}", text(item.first), text(item.second)));
  }
  return fmt::format("{{{}}}", fmt::join(pairs, ", "));
}

}  // namespace

std::string kind_words(const YAML::Node& node) {
  if (node.IsSequence()) return "(a list)";
  if (node.IsMap()) return "(a map)";
  return "(nothing)";
}

Entry::Kind entry_kind(const YAML::Node& node) {
  if (node.IsScalar()) return Entry::Kind::scalar;
  if (node.IsMap()) return Entry::Kind::map;
  return node.IsSequence() ? Entry::Kind::list : Entry::Kind::nothing;
}

// Items that are more than a word are quoted: ["8,16"] has one item, which is no number.
std::string entry_text(const YAML::Node& node) {
  if (node.IsScalar()) return node.Scalar();
  if (node.IsMap()) return map_text(node);
  if (!node.IsSequence()) return kind_words(node);
  std::vector<std::string> items;
  for (const YAML::Node& item : node) {
    const bool word = item.IsScalar() && item.Scalar().find_first_of(", []") == std::string::npos && !item.Scalar().empty();
    items.push_back(item.IsScalar() ? word ? item.Scalar() : fmt::format("\"{}\"", item.Scalar()) : kind_words(item));
  }
  return fmt::format("[{}]", fmt::join(items, ", "));
}

}  // namespace hlat
