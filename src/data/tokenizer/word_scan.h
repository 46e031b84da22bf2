// Hand-written scanners for the patterns that well-known tokenizers cut words with. A scanner's next(p, end) is the end of the
// word that starts at p, in UTF-8 text that ends at `end`; they agree with PCRE2 on the patterns named with them (patterns.h).
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "data/tokenizer/unicode.h"

namespace hlat::tokenizer::scan {

using unicode::Kind;

inline constexpr uint8_t kNotAscii = 4;

inline constexpr std::array<uint8_t, 256> kKindOfByte = [] {
  std::array<uint8_t, 256> k{};
  for (int c = 0; c < 256; ++c) {
    uint8_t kind = unicode::kOther;
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) kind = unicode::kLetter;
    if (c >= '0' && c <= '9') kind = unicode::kNumber;
    if (c == ' ' || (c >= '\t' && c <= '\r')) kind = unicode::kSpace;
    if (c >= 128) kind = kNotAscii;
    k[static_cast<size_t>(c)] = kind;
  }
  return k;
}();

struct KindAt {
  uint8_t kind;
  uint32_t size;
};

inline KindAt kind_at(const char* p) {
  const uint8_t k = kKindOfByte[static_cast<uint8_t>(*p)];
  if (k != kNotAscii) [[likely]]
    return {k, 1};
  const unicode::Char c = unicode::decode(p);
  return {unicode::kind(c.code), c.size};
}

// How many ASCII letters the eight bytes at p start with: most words end within them, without a branch per byte.
inline unsigned letters_of_8(const char* p) {
  uint64_t x = 0;
  std::memcpy(&x, p, 8);
  constexpr uint64_t kOnes = 0x0101010101010101u;
  const uint64_t lower = (x | 0x20 * kOnes) & 0x7F * kOnes;
  const uint64_t letter = (lower + (0x80 - 'a') * kOnes) & ~(lower + (0x7F - 'z') * kOnes) & ~x & 0x80 * kOnes;
  const uint64_t stop = ~letter & 0x80 * kOnes;
  return stop == 0 ? 8 : static_cast<unsigned>(__builtin_ctzll(stop)) / 8;
}

template <uint8_t kind>
const char* run(const char* p, const char* end) {
  while (p < end) {
    const KindAt k = kind_at(p);
    if (k.kind != kind) break;
    p += k.size;
  }
  return p;
}

inline const char* letters(const char* p, const char* end) {
  while (end - p >= 8) {
    const unsigned n = letters_of_8(p);
    p += n;
    if (n < 8) break;
  }
  // Past ASCII, at the end, or at what ends the word: most often the last, which this sees at once.
  return run<unicode::kLetter>(p, end);
}

// The end of the space that starts at p and belongs to no word: all of it at the end of the text, else without its last
// character, which may go with the word that follows; `first` is the size of the character at p.
inline const char* spaces(const char* p, const char* end, uint32_t first) {
  const char* last = p;
  const char* q = p + first;
  while (q < end) {
    const KindAt k = kind_at(q);
    if (k.kind != unicode::kSpace) break;
    last = q;
    q += k.size;
  }
  return q == end || last == p ? q : last;
}

// Size of 's 't 're 've 'm 'll 'd after the apostrophe at p, 0 for none. Lower case only, or any: then U+017F is an s too.
template <bool any_case>
uint32_t contraction(const char* p, const char* end) {
  if (end - p < 2) return 0;
  const auto lower = [](char c) { return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; };
  const char a = lower(p[1]);
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
  if (end - p < 3) return 0;
  const char b = lower(p[2]);
  if ((b == 'e' && (a == 'r' || a == 'v')) || (a == 'l' && b == 'l')) return 3;
  return any_case && p[1] == '\xC5' && p[2] == '\xBF' ? 3 : 0;
}

struct Gpt2 {
  static const char* next(const char* p, const char* end) {
    const char* q = p + (*p == ' ');
    if (q == end) return q;
    const KindAt k = kind_at(q);
    switch (k.kind) {
      case unicode::kLetter: return letters(q + k.size, end);
      case unicode::kNumber: return run<unicode::kNumber>(q + k.size, end);
      case unicode::kSpace: return spaces(p, end, q == p ? k.size : 1);
      default: break;
    }
    if (*p == '\'')
      if (const uint32_t n = contraction<false>(p, end)) return p + n;
    return run<unicode::kOther>(q + k.size, end);
  }
};

// Llama 3 takes numbers in threes, Qwen 2 one by one. cl100k, as tiktoken has it today, keeps space at the end of the text together.
template <int kDigits, bool kSpaceAtEnd = false>
struct Llama3 {
  static const char* next(const char* p, const char* end) {
    const KindAt k = kind_at(p);
    if (k.kind == unicode::kLetter) return letters(p + k.size, end);
    if (k.kind == unicode::kNumber) return number(p + k.size, end);
    if (*p == '\'')
      if (const uint32_t n = contraction<true>(p, end)) return p + n;
    const char* q = p + k.size;
    const KindAt after = q < end ? kind_at(q) : KindAt{unicode::kSpace, 0};
    if (after.kind == unicode::kLetter && *p != '\r' && *p != '\n') return letters(q + after.size, end);
    if (k.kind == unicode::kOther) return newlines(run<unicode::kOther>(q, end), end);
    if (*p == ' ' && after.kind == unicode::kOther) return newlines(run<unicode::kOther>(q + after.size, end), end);
    return space(p, end, k.size);
  }

 private:
  static const char* number(const char* p, const char* end) {
    for (int i = 1; i < kDigits && p < end; ++i) {
      const KindAt k = kind_at(p);
      if (k.kind != unicode::kNumber) break;
      p += k.size;
    }
    return p;
  }

  static const char* newlines(const char* p, const char* end) {
    while (p < end && (*p == '\r' || *p == '\n')) ++p;
    return p;
  }

  // Through the last line break, where the run of space has one.
  static const char* space(const char* p, const char* end, uint32_t first) {
    const char* q = run<unicode::kSpace>(p, end);
    if (kSpaceAtEnd && q == end) return end;
    for (const char* n = q; n > p; --n)
      if (n[-1] == '\r' || n[-1] == '\n') return n;
    return spaces(p, end, first);
  }
};

// Words of text where a space stands for U+2581, cut before every space.
struct EachSpace {
  static const char* next(const char* p, const char* end) {
    const void* q = p + 1 < end ? std::memchr(p + 1, ' ', static_cast<size_t>(end - p - 1)) : nullptr;
    return q != nullptr ? static_cast<const char*>(q) : end;
  }
};

}  // namespace hlat::tokenizer::scan
