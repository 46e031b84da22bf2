// Reading a part of tokenizer.json: every access says what is wrong and where, and unknown keys are errors, because an option
// that is not understood may change ids.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/error.h"

namespace hlat::tokenizer {

class JsonNode {
 public:
  JsonNode(const nlohmann::json& json, std::string where) : json_(json), where_(std::move(where)) {}

  const nlohmann::json& json() const { return json_; }
  const std::string& where() const { return where_; }
  [[noreturn]] void refuse(std::string_view what) const { fail("{}: {}", where_, what); }

  bool has(const char* key) const { return json_.is_object() && json_.contains(key) && !json_.at(key).is_null(); }
  JsonNode at(const char* key) const {
    if (!has(key)) refuse(fmt::format("'{}' is missing", key));
    return {json_.at(key), where_ + "." + key};
  }
  std::string text() const {
    if (!json_.is_string()) refuse("must be a string");
    return json_.get<std::string>();
  }
  std::string text(const char* key) const { return at(key).text(); }
  bool flag(const char* key, bool otherwise) const {
    if (!has(key)) return otherwise;
    if (!json_.at(key).is_boolean()) at(key).refuse("must be true or false");
    return json_.at(key).get<bool>();
  }
  int64_t integer() const {
    if (!json_.is_number_integer()) refuse("must be an integer");
    return json_.get<int64_t>();
  }

  // Calls visit(node) for each member of an array.
  template <class Visit>
  void each(const Visit& visit) const {
    if (!json_.is_array()) refuse("must be a list");
    for (size_t i = 0; i < json_.size(); ++i) visit(JsonNode(json_[i], fmt::format("{}[{}]", where_, i)));
  }

  // Keys other than these are an Error, unless null.
  void allow_keys(std::initializer_list<std::string_view> keys) const {
    if (!json_.is_object()) refuse("must be an object");
    for (const auto& [key, value] : json_.items())
      if (!value.is_null() && std::find(keys.begin(), keys.end(), key) == keys.end()) refuse(fmt::format("'{}' is not supported", key));
  }

 private:
  const nlohmann::json& json_;
  std::string where_;
};

}  // namespace hlat::tokenizer
