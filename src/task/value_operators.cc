#include "task/value_operators.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "task/text.h"

namespace hlat {

Json look_up(const Fields& fields, const std::string& name) {
  std::vector<std::string> known;
  for (const Json* place : {&fields.record, fields.shared}) {
    if (place == nullptr || !place->is_object()) continue;
    if (place->contains(name)) return (*place)[name];
    for (const auto& field : place->items()) known.push_back(field.key());
  }
  fail("no field '{}'; there {} {}", name, known.size() == 1 ? "is" : "are",
       known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")));
}

Json member(const Json& value, const std::string& name) {
  if (!value.is_object()) fail(".{} of {}", name, kind_of(value));
  if (!value.contains(name)) fail("no field '{}' in an object of {}", name, value.size());
  return value[name];
}

Json item(const Json& value, const Json& index) {
  if (value.is_object() && index.is_string()) return member(value, index.get<std::string>());
  if (!index.is_number_integer() || !(value.is_array() || value.is_string())) fail("{} indexed by {}", kind_of(value), kind_of(index));
  const int64_t size = value.is_array() ? static_cast<int64_t>(value.size()) : characters(value.get_ref<const std::string&>());
  const auto written = index.get<int64_t>();
  const int64_t at = written < 0 ? written + size : written;
  if (at < 0 || at >= size) fail("item {} of {} of {}", written, kind_of(value), size);
  if (value.is_array()) return value[static_cast<size_t>(at)];
  return std::string(slice(value.get_ref<const std::string&>(), at, at + 1));
}

Json part(const Json& value, const Json& begin, const Json& end) {
  for (const Json* bound : {&begin, &end})
    if (!bound->is_number_integer()) fail("a part bounded by {}", kind_of(*bound));
  if (value.is_string()) return std::string(slice(value.get_ref<const std::string&>(), begin.get<int64_t>(), end.get<int64_t>()));
  if (!value.is_array()) fail("a part of {}", kind_of(value));
  const auto size = static_cast<int64_t>(value.size());
  const auto place = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); };
  Json out = Json::array();
  for (int64_t i = place(begin.get<int64_t>()); i < place(end.get<int64_t>()); ++i) out.push_back(value[static_cast<size_t>(i)]);
  return out;
}

Json sum(const Json& a, const Json& b) {
  if (a.is_number_integer() && b.is_number_integer()) return a.get<int64_t>() + b.get<int64_t>();
  if (!a.is_array() || !b.is_array()) return text_of(a) + text_of(b);
  Json out = a;
  out.insert(out.end(), b.begin(), b.end());
  return out;
}

Json difference(const Json& a, const Json& b) {
  if (!a.is_number_integer() || !b.is_number_integer()) fail("{} - {}", kind_of(a), kind_of(b));
  return a.get<int64_t>() - b.get<int64_t>();
}

bool truth(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number()) return value.get<double>() != 0;
  if (value.is_string()) return !value.get_ref<const std::string&>().empty();
  return !value.empty();
}

bool compared(std::string_view how, const Json& a, const Json& b) {
  if (how == "==") return a == b;
  if (how == "!=") return a != b;
  if (!(a.is_number() && b.is_number()) && !(a.is_string() && b.is_string())) fail("{} {} {}", kind_of(a), how, kind_of(b));
  if (how == "<") return a < b;
  if (how == "<=") return a <= b;
  return how == ">" ? a > b : a >= b;
}

}  // namespace hlat
