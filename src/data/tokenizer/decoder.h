// Ids back to text. What a token adds to the text is worked out once, when the file is loaded.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hlat::tokenizer {

struct Decoder {
  std::vector<std::string> bytes;  // by id
  std::vector<bool> known;         // by id; other ids become <id>
  std::string separator;           // between tokens
  // What goes away at the start of the text: up to `strip` times this character.
  char strip_char = ' ';
  size_t strip = 0;
  bool strip_first_only = false;   // only from the first token that adds anything
  bool drop_first_spaces = false;  // all spaces of the first token, as the Metaspace decoder has it

  std::string decode(std::span<const int32_t> ids) const;
};

}  // namespace hlat::tokenizer
