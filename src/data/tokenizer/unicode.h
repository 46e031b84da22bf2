// UTF-8 and what a code point is: a letter, a number or a space to the patterns of tokenizers, a part of a word to added tokens,
// something that NFC may change. The tables (unicode_tables.inc) hold what the reference libraries take it for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hlat::tokenizer::unicode {

enum Kind : uint8_t { kOther = 0, kLetter = 1, kNumber = 2, kSpace = 3 };  // low two bits of the traits

struct TraitRange {
  uint32_t first;
  uint32_t last;
  uint8_t value;
};

struct Decomposition {
  uint32_t composed;
  uint32_t first;
  uint32_t second;   // 0: none
  uint8_t composes;  // 1: first and second become composed again
};

#include "data/tokenizer/unicode_tables.inc"

inline constexpr uint32_t kTableEnd = 0x20000;
inline constexpr uint8_t kUnstable = 4;  // a combining mark, or not the same under NFC next to other characters
inline constexpr uint8_t kWordPart = 8;

uint8_t high_traits(uint32_t c);

inline uint8_t traits(uint32_t c) {
  if (c >= kTableEnd) return high_traits(c);
  return static_cast<uint8_t>(kTraitBits[kTraitBlock[c >> 7] * 8u + (c >> 4 & 7u)] >> (c & 15u) * 4u & 15u);
}
inline Kind kind(uint32_t c) { return static_cast<Kind>(traits(c) & 3u); }
bool is_digit(uint32_t c);  // as the Digits pre-tokenizer has it

struct Char {
  uint32_t code;
  uint32_t size;  // bytes
};

// The character at `p` of text that is UTF-8 and does not end there.
inline Char decode(const char* p) {
  const auto* b = reinterpret_cast<const uint8_t*>(p);
  if (b[0] < 0x80) return {b[0], 1};
  if (b[0] < 0xE0) return {(b[0] & 0x1Fu) << 6 | (b[1] & 0x3Fu), 2};
  if (b[0] < 0xF0) return {(b[0] & 0x0Fu) << 12 | (b[1] & 0x3Fu) << 6 | (b[2] & 0x3Fu), 3};
  return {(b[0] & 0x07u) << 18 | (b[1] & 0x3Fu) << 12 | (b[2] & 0x3Fu) << 6 | (b[3] & 0x3Fu), 4};
}

inline bool is_continuation(char c) { return (static_cast<uint8_t>(c) & 0xC0u) == 0x80u; }

// The character at `p` of any bytes; code kInvalid and the size of the maximal ill-formed part where there is none.
inline constexpr uint32_t kInvalid = 0xFFFFFFFFu;
Char decode_any(const char* p, const char* end);

// The character that ends at `p`, kInvalid where the bytes before it are none.
Char decode_before(const char* begin, const char* p);

void append(std::string& out, uint32_t code);
// The largest border of two characters at or before `limit`; `limit` itself in bytes that are no characters.
inline size_t border_before(std::string_view text, size_t limit) {
  size_t at = limit;
  while (at > 0 && limit - at < 3 && is_continuation(text[at])) --at;
  return at > 0 ? at : limit;
}

// `text` where it is UTF-8; else `buffer`, where each maximal ill-formed part became U+FFFD.
std::string_view valid(std::string_view text, std::string& buffer);

}  // namespace hlat::tokenizer::unicode
