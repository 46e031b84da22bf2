#include "task/functions.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/error.h"
#include "base/json_text.h"
#include "task/text.h"

namespace hlat {
namespace {

using Arguments = std::span<const Json>;

const Json& list(const Json& value) {
  if (!value.is_array()) fail("{} where a list is needed", kind_of(value));
  return value;
}

const Json& object(const Json& value) {
  if (!value.is_object()) fail("{} where an object is needed", kind_of(value));
  return value;
}

std::string brief(const Json& value) {
  const std::string text = json_text(value);
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

// Of each item where the value is a list.
template <class Call>
Json each_text(const Json& value, const Call& call) {
  if (!value.is_array()) return call(text_of(value));
  Json out = Json::array();
  for (const Json& item : value) out.push_back(call(text_of(item)));
  return out;
}

// Position of the separator that splits a text; Error where the text has none.
size_t border(const std::string& text, const Json& separator, bool last) {
  const std::string wanted = text_of(separator);
  const size_t at = last ? text.rfind(wanted) : text.find(wanted);
  if (at == std::string::npos) fail("no '{}' in {}", wanted, brief(text));
  return at;
}

Json before(const Json& value, Arguments a, bool last) {
  return each_text(value, [&](const std::string& text) { return text.substr(0, border(text, a[0], last)); });
}

Json after(const Json& value, Arguments a, bool last) {
  return each_text(value, [&](const std::string& text) { return text.substr(border(text, a[0], last) + text_of(a[0]).size()); });
}

Json replaced(const Json& value, Arguments a) {
  const std::string from = text_of(a[0]), to = text_of(a[1]);
  if (from.empty()) fail("replace: nothing to be replaced");
  return each_text(value, [&](const std::string& text) { return replace_all(text, from, to); });
}

Json split(const Json& value, Arguments a) {
  const std::string text = text_of(value), separator = text_of(a[0]);
  if (separator.empty()) fail("split: an empty separator");
  Json out = Json::array();
  size_t begin = 0;
  for (size_t at = text.find(separator); at != std::string::npos; at = text.find(separator, begin)) {
    out.push_back(text.substr(begin, at - begin));
    begin = at + separator.size();
  }
  out.push_back(text.substr(begin));
  return out;
}

Json join(const Json& value, Arguments a) {
  std::string out;
  for (const Json& item : list(value)) {
    if (&item != &value.front()) out += text_of(a[0]);
    out += text_of(item);
  }
  return out;
}

Json keys(const Json& value) {
  Json out = Json::array();
  for (const auto& item : object(value).items()) out.push_back(item.key());
  return out;
}

Json values(const Json& value) {
  Json out = Json::array();
  for (const auto& item : object(value).items()) out.push_back(item.value());
  return out;
}

Json pluck(const Json& value, Arguments a) {
  const std::string field = text_of(a[0]);
  Json out = Json::array();
  for (const Json& item : list(value)) {
    if (!object(item).contains(field)) fail("no field '{}' in {}", field, brief(item));
    out.push_back(item[field]);
  }
  return out;
}

Json index_of(const Json& value, Arguments a) {
  int64_t at = 0;
  for (const Json& item : list(a[0])) {
    if (item == value) return at;
    ++at;
  }
  fail("{} is none of {}", brief(value), brief(a[0]));
}

Json whole_number(const Json& value) {
  if (value.is_number_integer()) return value;
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  const std::string text(strip(text_of(value)));
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) fail("{} is not a whole number", brief(value));
  return number;
}

Json length(const Json& value) {
  if (value.is_string()) return characters(value.get_ref<const std::string&>());
  if (value.is_structured()) return value.size();
  fail("{} has no length", kind_of(value));
}

template <std::string (*call)(std::string_view)>
Json each(const Json& value, Arguments, const Rewrite&) {
  return each_text(value, [](const std::string& text) { return call(text); });
}

std::string stripped(std::string_view text) { return std::string(strip(text)); }

constexpr std::array kFunctions = {
    Function{"after", 1, [](const Json& v, Arguments a, const Rewrite&) { return after(v, a, false); }},
    Function{"after_last", 1, [](const Json& v, Arguments a, const Rewrite&) { return after(v, a, true); }},
    Function{"before", 1, [](const Json& v, Arguments a, const Rewrite&) { return before(v, a, false); }},
    Function{"before_last", 1, [](const Json& v, Arguments a, const Rewrite&) { return before(v, a, true); }},
    Function{"capitalize", 0, each<capitalize>},
    Function{"index_of", 1, [](const Json& v, Arguments a, const Rewrite&) { return index_of(v, a); }},
    Function{"int", 0, [](const Json& v, Arguments, const Rewrite&) { return whole_number(v); }},
    Function{"join", 1, [](const Json& v, Arguments a, const Rewrite&) { return join(v, a); }},
    Function{"keys", 0, [](const Json& v, Arguments, const Rewrite&) { return keys(v); }},
    Function{"length", 0, [](const Json& v, Arguments, const Rewrite&) { return length(v); }},
    Function{"lower", 0, each<lower>},
    Function{"pluck", 1, [](const Json& v, Arguments a, const Rewrite&) { return pluck(v, a); }},
    Function{"replace", 2, [](const Json& v, Arguments a, const Rewrite&) { return replaced(v, a); }},
    Function{"rewrite", 0,
             [](const Json& v, Arguments, const Rewrite& rewrite) {
               return each_text(v, [&](const std::string& text) { return rewrite(text); });
             }},
    Function{"split", 1, [](const Json& v, Arguments a, const Rewrite&) { return split(v, a); }},
    Function{"strip", 0, each<stripped>},
    Function{"values", 0, [](const Json& v, Arguments, const Rewrite&) { return values(v); }},
};

}  // namespace

const Function* find_function(std::string_view name) {
  const auto* found = std::find_if(kFunctions.begin(), kFunctions.end(), [&](const Function& f) { return f.name == name; });
  return found == kFunctions.end() ? nullptr : found;
}

std::vector<std::string_view> function_names() {
  std::vector<std::string_view> names;
  for (const Function& f : kFunctions) names.push_back(f.name);
  return names;
}

std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (value.is_number()) return value.dump();
  fail("{} where a text is needed", kind_of(value));
}

std::string kind_of(const Json& value) {
  if (value.is_string()) return "a text";
  if (value.is_boolean()) return "true or false";
  if (value.is_number()) return "a number";
  if (value.is_array()) return "a list";
  return value.is_object() ? "an object" : "null";
}

}  // namespace hlat
