#include "data/reader/json_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "data/reader/field_list.h"
#include "data/reader/utf8.h"

namespace hlat::reader {
namespace {

constexpr std::string_view kArrayFile = "; a file that is one JSON array is read when its name ends in .json";
constexpr size_t kKeepCapacity = 16 << 20;  // what the parser keeps after a long line, times 17

const char* type_name(simdjson::dom::element_type type) {
  using simdjson::dom::element_type;
  switch (type) {
    case element_type::ARRAY: return "an array";
    case element_type::OBJECT: return "an object";
    case element_type::STRING: return "a string";
    case element_type::BOOL: return "true or false";
    case element_type::NULL_VALUE: return "null";
    default: return "a number";
  }
}

std::string describe(simdjson::error_code error) {
  switch (error) {
    case simdjson::UTF8_ERROR: return "invalid UTF-8";
    case simdjson::STRING_ERROR: return "malformed JSON: a broken escape in a string";
    case simdjson::UNESCAPED_CHARS: return "malformed JSON: a control character in a string";
    case simdjson::UNCLOSED_STRING: return "malformed JSON: a string without its end";
    case simdjson::DEPTH_ERROR: return "malformed JSON: nested too deep";
    case simdjson::MEMALLOC: return "not enough memory for a line of this length";
    default: return "malformed JSON";
  }
}

JsonText bad(std::string reason) { return {.kind = JsonText::Kind::bad, .text = {}, .reason = std::move(reason)}; }

// Integers above 64 bits are JSON, and no concern of ours: all but the first digit become blanks. What only looks like one keeps its fault.
void shorten_integers(std::string& line) {
  constexpr size_t kDigits = 18;  // always fit
  bool in_string = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (in_string) {
      if (line[i] == '\\')
        ++i;
      else if (line[i] == '"')
        in_string = false;
      continue;
    }
    if (line[i] == '"') in_string = true;
    if (line[i] < '1' || line[i] > '9') continue;
    const size_t end = std::min(line.find_first_not_of("0123456789", i), line.size());
    const bool integer = (end == line.size() || (line[end] != '.' && line[end] != 'e' && line[end] != 'E')) &&
                         (i == 0 || std::string_view(" \t\r\n,:[-").find(line[i - 1]) != std::string_view::npos);
    if (integer && end - i > kDigits)
      std::fill(line.begin() + static_cast<std::ptrdiff_t>(i) + 1, line.begin() + static_cast<std::ptrdiff_t>(end), ' ');
    i = end - 1;
    // The digits behind a point are no integer of their own.
    while (i + 1 < line.size() && std::string_view("0123456789.eE+-").find(line[i + 1]) != std::string_view::npos) ++i;
  }
}

std::string no_field(simdjson::dom::object object, std::string_view field) {
  std::vector<std::string> names;
  for (const auto& [name, value] : object) names.emplace_back(name);
  return fmt::format("no field \"{}\"; it has {}", field, names.empty() ? "none" : field_list(field, std::move(names)));
}

}  // namespace

simdjson::error_code JsonLineParser::read(std::string_view line, simdjson::dom::element& value) {
  const auto error = parser_.parse(line.data(), line.size(), false).get(value);
  if (error != simdjson::NUMBER_ERROR) return error;
  shortened_.assign(line);
  shorten_integers(shortened_);
  shortened_.append(kJsonPadding, '\0');
  return parser_.parse(shortened_.data(), line.size(), false).get(value);
}

JsonText JsonLineParser::parse(std::string_view line, std::string_view field, JsonStrings strings) {
  if (line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());  // a byte order mark, also inside joined files
  const size_t begin = line.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {.kind = JsonText::Kind::blank, .text = {}, .reason = {}};
  if (parser_.capacity() > kKeepCapacity && line.size() <= kKeepCapacity) parser_ = simdjson::dom::parser();

  simdjson::dom::element value;
  if (const auto error = read(line, value)) return bad(describe(error) + (line[begin] == '[' ? std::string(kArrayFile) : ""));
  JsonText result{.kind = JsonText::Kind::text, .text = {}, .reason = {}};
  if (strings == JsonStrings::taken && !value.get(result.text)) return result;
  simdjson::dom::object object;
  if (value.get(object))
    return bad(fmt::format("not a JSON object but {}{}", type_name(value.type()), line[begin] == '[' ? kArrayFile : ""));
  simdjson::dom::element found;
  if (object.at_key(field).get(found)) return bad(no_field(object, field));
  if (found.get(result.text)) return bad(fmt::format("field \"{}\" is {}, not a string", field, type_name(found.type())));
  return result;
}

}  // namespace hlat::reader
