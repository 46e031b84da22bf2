#include "config/saved.h"

#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/json_text.h"
#include "config/fields.h"
#include "config/value.h"

namespace hlat {
namespace {

using Json = nlohmann::ordered_json;
using Entries = std::vector<std::pair<std::string, const Json*>>;  // by key
using FieldsByKey = std::unordered_map<std::string, Field>;

// Every value of the JSON under the name that its key would have. The items of a list follow the list.
Entries entries_of(const Json& json) {
  Entries list;
  for (const auto& [section, content] : json.items()) {
    if (!content.is_object()) list.emplace_back(section, &content);
    if (!content.is_object()) continue;
    for (const auto& [name, value] : content.items()) {
      list.emplace_back(section + "." + name, &value);
      if (!value.is_array()) continue;
      for (size_t i = 0; i < value.size(); ++i) {
        if (!value[i].is_object()) continue;
        for (const auto& [leaf, item] : value[i].items()) list.emplace_back(fmt::format("{}.{}[{}].{}", section, name, i, leaf), &item);
      }
    }
  }
  return list;
}

FieldsByKey by_key(Config& config) {
  FieldsByKey fields;
  for (Field& f : all_fields(config)) fields.emplace(f.key(), std::move(f));
  return fields;
}

// Names of sources may hold commas and colons, which the text of a map has no quotes for.
bool store_weights(const Field& f, const Json& value) {
  Weights weights;
  for (const auto& [name, weight] : value.items()) {
    if (!weight.is_number()) return false;
    weights[name] = weight.get<double>();
  }
  *std::get<Weights*>(f.value) = std::move(weights);
  return within_limits(f);
}

bool store(const Field& f, const Json& value, Config& config) {
  if (is_item_list(f)) return value.is_array();  // has its size already
  if (is_map(f)) return value.is_object() && store_weights(f, value);
  if (value.is_null() && f.value == Field::Value(&config.train.steps)) {  // they follow from epochs
    config.train.steps = 0;
    return true;
  }
  return parse_value(f, value.is_string() ? value.get<std::string>() : json_text(value));
}

std::string shown(const std::string& text) { return text.empty() ? "\"\"" : text; }

}  // namespace

SavedConfig config_from_json(const Json& json) {
  if (!json.is_object()) fail<UsageError>("the saved config is no JSON object");
  SavedConfig saved;
  const Entries entries = entries_of(json);
  FieldsByKey fields = by_key(saved.config);
  for (const auto& [key, value] : entries) {
    const auto f = fields.find(key);
    if (f != fields.end() && is_item_list(f->second) && value->is_array()) resize_items(f->second, value->size());
  }
  fields = by_key(saved.config);
  for (const auto& [key, value] : entries) {
    const auto f = fields.find(key);
    if (f == fields.end() || !store(f->second, *value, saved.config))
      saved.unknown.push_back(fmt::format("{} = {}", key, json_text(*value)));
  }
  return saved;
}

std::string KeyChange::str() const { return fmt::format("{} {} -> {}", key, shown(was), shown(is)); }

std::vector<KeyChange> config_changes(const Config& saved, const Config& now) {
  Config before = saved, after = now;
  const FieldsByKey old = by_key(before);
  std::vector<KeyChange> changes;
  for (const Field& f : all_fields(after)) {
    const auto was = old.find(f.key());
    if (was == old.end()) continue;
    const std::string a = text_of(was->second), b = text_of(f);
    if (a != b) changes.push_back({f.key(), a, b});
  }
  return changes;
}

}  // namespace hlat
