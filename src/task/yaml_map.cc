#include "task/yaml_map.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/nearest.h"

namespace hlat {

YamlMap::YamlMap(const YAML::Node& node, std::string file, std::string title, Problems& problems)
    : node_(node), file_(std::move(file)), title_(std::move(title)), problems_(&problems) {
  if (!node_.IsDefined() || node_.IsNull()) return;
  if (!node_.IsMap()) {
    problem(node_, fmt::format("{} must hold `key: value` lines", title_));
    return;
  }
  for (const auto& item : node_) {
    if (!item.first.IsScalar()) {
      problem(item.first, "a key must be a word");
    } else if (!keys_.emplace(item.first.Scalar(), item.first).second) {
      problem(item.first, fmt::format("{} is there twice", item.first.Scalar()));
    }
  }
}

std::string YamlMap::where(const YAML::Node& at) const {
  const int line = at.IsDefined() ? at.Mark().line : -1;  // counts from 0, -1 where unknown
  return line < 0 ? file_ : fmt::format("{}:{}", file_, line + 1);
}

void YamlMap::problem(const YAML::Node& at, const std::string& what) { problems_->add(where(at), what); }

void YamlMap::problem(const std::string& key, const std::string& what) {
  const auto at = keys_.find(key);
  problem(at == keys_.end() ? node_ : at->second, what);
}

YAML::Node YamlMap::node(const std::string& key) {
  asked_.push_back(key);
  if (keys_.find(key) == keys_.end()) return YAML::Node(YAML::NodeType::Undefined);
  const YAML::Node value = node_[key];
  return value.IsNull() ? YAML::Node(YAML::NodeType::Undefined) : value;
}

bool YamlMap::has(const std::string& key) { return node(key).IsDefined(); }

template <class T>
T YamlMap::scalar(const std::string& key, T fallback, std::string_view wanted) {
  const YAML::Node value = node(key);
  if (!value.IsDefined()) return fallback;
  T out{};
  if (value.IsScalar() && YAML::convert<T>::decode(value, out)) return out;
  problem(key, fmt::format("{} must be {}", key, wanted));
  return fallback;
}

std::string YamlMap::text(const std::string& key, const std::string& fallback) { return scalar<std::string>(key, fallback, "a text"); }

std::string YamlMap::required(const std::string& key) {
  if (!has(key)) problem(key, fmt::format("{} has no `{}`", title_, key));
  return text(key);
}

int64_t YamlMap::integer(const std::string& key, int64_t fallback, int64_t least) {
  const auto value = scalar<int64_t>(key, fallback, "a whole number");
  if (value < least) problem(key, fmt::format("{} must be at least {}", key, least));
  return value;
}

double YamlMap::number(const std::string& key, double fallback, double least) {
  const auto value = scalar<double>(key, fallback, "a number");
  if (!(value >= least)) problem(key, fmt::format("{} must be at least {}", key, least));
  return value;
}

bool YamlMap::flag(const std::string& key, bool fallback) { return scalar<bool>(key, fallback, "true or false"); }

std::vector<std::string> YamlMap::texts(const std::string& key) {
  const YAML::Node value = node(key);
  if (!value.IsDefined()) return {};
  if (value.IsScalar()) return {value.Scalar()};
  std::vector<std::string> out;
  for (const auto& item : value) {
    if (!value.IsSequence() || !item.IsScalar()) {
      problem(key, fmt::format("{} must be a list of texts", key));
      return {};
    }
    out.push_back(item.Scalar());
  }
  return out;
}

YamlMap YamlMap::map(const std::string& key) { return {node(key), file_, fmt::format("`{}`", key), *problems_}; }

std::vector<YamlMap> YamlMap::maps(const std::string& key) {
  const YAML::Node value = node(key);
  std::vector<YamlMap> out;
  if (value.IsDefined() && !value.IsSequence())
    problem(key, fmt::format("{} must be a list", key));
  else if (value.IsDefined())
    for (const auto& node : value) out.push_back(item(key, node));
  return out;
}

YamlMap YamlMap::item(const std::string& key, const YAML::Node& node) const {
  return {node, file_, fmt::format("an item of `{}`", key), *problems_};
}

size_t YamlMap::choice(const std::string& key, const std::vector<std::string_view>& names, size_t fallback) {
  const std::string value = text(key, std::string(names[fallback]));
  const auto found = std::find(names.begin(), names.end(), value);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  problem(key, fmt::format("{} cannot be '{}'; {}", key, value, alternatives(value, names)));
  return fallback;
}

void YamlMap::refuse_unknown() {
  std::vector<std::string_view> known;  // each once, in the order of asking
  for (const std::string& key : asked_)
    if (std::find(known.begin(), known.end(), key) == known.end()) known.push_back(key);
  for (const auto& [key, at] : keys_)
    if (std::find(known.begin(), known.end(), key) == known.end())
      problem(at, fmt::format("{} has no key '{}'; {}", title_, key, alternatives(key, known)));
}

}  // namespace hlat
