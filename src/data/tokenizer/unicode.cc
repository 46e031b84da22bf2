// Code points outside the small tables, and bytes that may not be UTF-8.
#include "data/tokenizer/unicode.h"

#include <simdjson.h>

#include <algorithm>
#include <iterator>

namespace hlat::tokenizer::unicode {
namespace {

template <size_t N>
uint8_t in_ranges(const TraitRange (&ranges)[N], uint32_t c) {
  const TraitRange* r =
      std::lower_bound(std::begin(ranges), std::end(ranges), c, [](const TraitRange& a, uint32_t b) { return a.last < b; });
  return r != std::end(ranges) && c >= r->first ? r->value : uint8_t{0};
}

// Limits of the second byte after this first one (Unicode's table of well-formed sequences); size 0: no character starts so.
struct Lead {
  uint32_t size;
  uint8_t low;
  uint8_t high;
};

Lead lead(uint8_t b) {
  if (b < 0xC2) return {0, 0, 0};
  if (b < 0xE0) return {2, 0x80, 0xBF};
  if (b < 0xF0) return {3, uint8_t(b == 0xE0 ? 0xA0 : 0x80), uint8_t(b == 0xED ? 0x9F : 0xBF)};
  if (b < 0xF5) return {4, uint8_t(b == 0xF0 ? 0x90 : 0x80), uint8_t(b == 0xF4 ? 0x8F : 0xBF)};
  return {0, 0, 0};
}

}  // namespace

uint8_t high_traits(uint32_t c) { return in_ranges(kHighTraits, c); }

bool is_digit(uint32_t c) { return kind(c) == kNumber || (c >= 0x80 && in_ranges(kMoreDigits, c) != 0); }

Char decode_any(const char* p, const char* end) {
  const auto first = static_cast<uint8_t>(*p);
  if (first < 0x80) return {first, 1};
  const Lead l = lead(first);
  uint32_t good = 1;
  while (good < l.size && p + good < end) {
    const auto b = static_cast<uint8_t>(p[good]);
    if (b < (good == 1 ? l.low : 0x80) || b > (good == 1 ? l.high : 0xBF)) break;
    ++good;
  }
  if (l.size == 0 || good < l.size) return {kInvalid, good};
  return decode(p);
}

Char decode_before(const char* begin, const char* p) {
  for (const char* start = p - 1; start >= begin && p - start <= 4; --start) {
    if (is_continuation(*start)) continue;
    const Char c = decode_any(start, p);
    if (start + c.size == p) return c;
    break;
  }
  return {kInvalid, 1};
}

void append(std::string& out, uint32_t code) {
  const auto put = [&out](uint32_t b) { out.push_back(static_cast<char>(b)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

std::string_view valid(std::string_view text, std::string& buffer) {
  if (simdjson::validate_utf8(text.data(), text.size())) return text;
  buffer.clear();
  const char* end = text.data() + text.size();
  for (const char* p = text.data(); p < end;) {
    const Char c = decode_any(p, end);
    if (c.code == kInvalid)
      buffer += "\xEF\xBF\xBD";
    else
      buffer.append(p, c.size);
    p += c.size;
  }
  return buffer;
}

}  // namespace hlat::tokenizer::unicode
