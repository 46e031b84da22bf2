// What is done to text before it is cut into words.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/normal_form.h"
#include "data/tokenizer/regex.h"

namespace hlat::tokenizer {

struct NormalizerStep {
  enum Kind {
    form,             // one of Unicode's
    lowercase,        // character by character
    strip_accents,    // combining marks go
    nmt,              // control characters go, odd spaces become plain ones
    strip,            // white space at the start and the end
    prepend,          // to a text that is not empty
    replace,          // text by text
    replace_pattern,  // matches by text
  } kind = form;
  std::string from;  // replace
  std::string to;    // replace, replace_pattern, prepend
  NormalForm normal_form = NormalForm::nfc;
  bool left = false;  // strip
  bool right = false;
  std::shared_ptr<const Regex> pattern = nullptr;

  // What it makes of a character does not depend on other characters across a space.
  bool is_local() const { return kind == form || kind == lowercase || kind == strip_accents || kind == prepend; }
};

struct Normalizer {
  std::vector<NormalizerStep> steps;
  // The last step makes U+2581 of spaces. Then nothing else is left to be a space, and it is kept as one byte instead of three:
  // after normalization every U+2581 is a space.
  bool marks_spaces = false;

  bool empty() const { return steps.empty() && !marks_spaces; }

  using Buffers = std::array<std::string, 2>;
  // `text` itself or one of the buffers. `continues`: nothing is prepended.
  std::string_view apply(std::string_view text, bool continues, Buffers& buffers) const;
};

// Every U+2581 becomes a space.
std::string_view unmark_spaces(std::string_view text, std::string& buffer);

}  // namespace hlat::tokenizer
