// The functions of task templates: {{ value | name(arguments) }}. A function of a text, applied to a list, is applied to each of its items.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "task/rewrite.h"

namespace hlat {

using Json = nlohmann::ordered_json;

struct Function {
  std::string_view name;
  size_t arguments;  // besides the value itself
  Json (*call)(const Json& value, std::span<const Json> arguments, const Rewrite& rewrite);
};

const Function* find_function(std::string_view name);  // null: there is none
std::vector<std::string_view> function_names();

// A value as it is put into a text: true and false as Python writes them. Error for lists, objects and null.
std::string text_of(const Json& value);
std::string kind_of(const Json& value);  // "a list", for messages

}  // namespace hlat
