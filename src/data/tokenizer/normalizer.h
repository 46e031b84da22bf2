// What is done to text before it is cut into words.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace hlat::tokenizer {

struct NormalizerStep {
  enum Kind { nfc, prepend, replace } kind = nfc;
  std::string from;  // replace
  std::string to;    // replace, prepend
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
