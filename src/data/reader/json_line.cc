#include "data/reader/json_line.h"

#include <fmt/format.h>

#include "data/reader/utf8.h"

namespace hlat::reader {
namespace {

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

}  // namespace

JsonText JsonLineParser::parse(std::string_view line, std::string_view field) {
  if (line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());  // a byte order mark, also inside joined files
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return {.kind = JsonText::Kind::blank, .text = {}, .reason = {}};
  if (parser_.capacity() > kKeepCapacity && line.size() <= kKeepCapacity) parser_ = simdjson::dom::parser();

  simdjson::dom::element value;
  if (const auto error = parser_.parse(line.data(), line.size(), false).get(value)) return bad(describe(error));
  simdjson::dom::object object;
  if (value.get(object)) return bad(fmt::format("not a JSON object but {}", type_name(value.type())));
  simdjson::dom::element found;
  if (object.at_key(field).get(found)) return bad(fmt::format("no field \"{}\"", field));
  JsonText result{.kind = JsonText::Kind::text, .text = {}, .reason = {}};
  if (found.get(result.text)) return bad(fmt::format("field \"{}\" is {}, not a string", field, type_name(found.type())));
  return result;
}

}  // namespace hlat::reader
