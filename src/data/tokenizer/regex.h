// Patterns of tokenizer files. They are written for other engines; a pattern is first rewritten so that properties and spaces are what the
// tables (unicode.h, categories.h) say, and what PCRE2 would read differently is an Error.
#pragma once

#include <string>

#include "base/pattern.h"

namespace hlat::tokenizer {

class Regex : public Pattern {
 public:
  explicit Regex(const std::string& pattern);  // an Error names what is not supported
};

}  // namespace hlat::tokenizer
