// One line of a .jsonl file: a JSON object with a field of text. The whole line is validated, its UTF-8 too.
#pragma once

#include <simdjson.h>

#include <string>
#include <string_view>

namespace hlat::reader {

constexpr size_t kJsonPadding = simdjson::SIMDJSON_PADDING;

struct JsonText {
  enum class Kind { text, blank, bad } kind = Kind::bad;
  std::string_view text;  // until the next parse
  std::string reason;     // of a bad line
};

enum class JsonStrings : uint8_t { refused, taken };  // a value that is a string itself: the text

// Not for several threads at once.
class JsonLineParser {
 public:
  // kJsonPadding bytes behind the line must be readable.
  JsonText parse(std::string_view line, std::string_view field, JsonStrings strings = JsonStrings::refused);

 private:
  simdjson::error_code read(std::string_view line, simdjson::dom::element& value);

  std::string shortened_;  // a line with numbers that simdjson does not take
  simdjson::dom::parser parser_;
};

}  // namespace hlat::reader
