// JSON as text. Bytes that are no UTF-8 become U+FFFD: paths need not be UTF-8, and a model's text can be cut within a character.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace hlat {

// indent: blanks for each level; -1: one line.
template <class Json>
std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace hlat
