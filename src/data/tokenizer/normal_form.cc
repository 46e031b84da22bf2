// Decompose fully, sort runs of combining marks by class, compose (Unicode Standard Annex 15). Only stretches with a character
// that can change are touched; Hangul syllables are arithmetic.
#include "data/tokenizer/normal_form.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <vector>

#include "data/tokenizer/categories.h"
#include "data/tokenizer/unicode.h"

namespace hlat::tokenizer {
namespace {

using namespace unicode;  // NOLINT(google-build-using-namespace)

constexpr uint32_t kSyllable = 0xAC00, kLeading = 0x1100, kVowel = 0x1161, kTrailing = 0x11A7;
constexpr uint32_t kLeadings = 19, kVowels = 21, kTrailings = 28;

struct Mark {
  uint32_t code;
  uint8_t order;  // its combining class; 0 starts a new group
};

uint8_t combining_class(uint32_t c) {
  if (c < 0x300) return 0;
  const auto* end = std::end(kCombiningClass);
  const auto* r = std::lower_bound(std::begin(kCombiningClass), end, c, [](const TraitRange& a, uint32_t b) { return a.last < b; });
  return r != end && c >= r->first ? r->value : uint8_t{0};
}

struct FormTraits {
  bool compatibility;
  bool composes;
};

FormTraits traits_of(NormalForm form) {
  return {.compatibility = form == NormalForm::nfkc || form == NormalForm::nfkd,
          .composes = form == NormalForm::nfc || form == NormalForm::nfkc};
}

void decompose(uint32_t c, std::vector<Mark>& out) {
  if (c >= kSyllable && c < kSyllable + kLeadings * kVowels * kTrailings) {
    const uint32_t s = c - kSyllable;
    out.push_back({kLeading + s / (kVowels * kTrailings), 0});
    out.push_back({kVowel + s / kTrailings % kVowels, 0});
    if (s % kTrailings != 0) out.push_back({kTrailing + s % kTrailings, 0});
    return;
  }
  const auto* end = std::end(kDecompositions);
  const auto* d = std::lower_bound(std::begin(kDecompositions), end, c, [](const Decomposition& a, uint32_t b) { return a.composed < b; });
  if (d == end || d->composed != c) {
    out.push_back({c, combining_class(c)});
    return;
  }
  decompose(d->first, out);
  if (d->second != 0) decompose(d->second, out);
}

// What two characters become, 0 where they stay two.
uint32_t composed(uint32_t a, uint32_t b) {
  if (a - kLeading < kLeadings && b - kVowel < kVowels) return kSyllable + ((a - kLeading) * kVowels + (b - kVowel)) * kTrailings;
  if (a - kSyllable < kLeadings * kVowels * kTrailings && (a - kSyllable) % kTrailings == 0 && b - kTrailing - 1 < kTrailings - 1)
    return a + (b - kTrailing);
  static const std::vector<Decomposition> pairs = [] {
    std::vector<Decomposition> v;
    std::copy_if(std::begin(kDecompositions), std::end(kDecompositions), std::back_inserter(v),
                 [](const auto& d) { return d.composes != 0; });
    std::sort(v.begin(), v.end(), [](const auto& x, const auto& y) { return std::pair(x.first, x.second) < std::pair(y.first, y.second); });
    return v;
  }();
  const auto it = std::lower_bound(pairs.begin(), pairs.end(), std::pair(a, b),
                                   [](const Decomposition& d, const auto& key) { return std::pair(d.first, d.second) < key; });
  return it != pairs.end() && it->first == a && it->second == b ? it->composed : 0;
}

void compose(std::vector<Mark>& marks) {
  size_t out = 0;                 // marks[0, out) is the result so far
  size_t starter = marks.size();  // its last character of class 0
  for (size_t i = 0; i < marks.size(); ++i) {
    const Mark m = marks[i];
    if (starter < out) {
      // A mark of the same or a higher class between the two blocks them.
      const bool adjacent = starter + 1 == out;
      const uint32_t c = adjacent || marks[out - 1].order < m.order ? composed(marks[starter].code, m.code) : 0;
      if (c != 0) {
        marks[starter].code = c;
        continue;
      }
    }
    if (m.order == 0) starter = out;
    marks[out++] = m;
  }
  marks.resize(out);
}

void decompose_for(const FormTraits& form, uint32_t c, std::vector<Mark>& out) {
  const std::span<const uint32_t> parts = form.compatibility ? compatibility(c) : std::span<const uint32_t>{};
  if (parts.empty()) return decompose(c, out);
  for (const uint32_t part : parts) out.push_back({part, combining_class(part)});
}

void normalize(const FormTraits& form, std::string_view part, std::vector<Mark>& marks, std::string& out) {
  marks.clear();
  for (const char *p = part.data(), *end = p + part.size(); p < end;) {
    const Char c = decode(p);
    p += c.size;
    decompose_for(form, c.code, marks);
  }
  for (size_t i = 0; i < marks.size(); ++i) {
    size_t j = i;
    while (j < marks.size() && marks[j].order != 0) ++j;
    std::stable_sort(marks.begin() + i, marks.begin() + j, [](const Mark& a, const Mark& b) { return a.order < b.order; });
    i = j;
  }
  if (form.composes) compose(marks);
  for (const Mark& m : marks) append(out, m.code);
}

// Whether a form may change the character; of NFC it is known, of the others all that is not ASCII may.
bool is_unstable(NormalForm form, uint32_t c) { return form == NormalForm::nfc ? (traits(c) & kUnstable) != 0 : c >= 0x80; }

// The first character at or after p that the form may change, and the character before it, with which it may compose.
struct Stop {
  const char* before;
  const char* at;
};

Stop next_unstable(NormalForm form, const char* p, const char* end) {
  const char* before = p;
  while (p < end) {
    uint64_t eight = 0;
    while (end - p >= 8 && (std::memcpy(&eight, p, 8), (eight & 0x8080808080808080u) == 0)) {
      p += 8;
      before = p - 1;
    }
    if (p == end) break;
    const Char c = decode(p);
    if (is_unstable(form, c.code)) return {before, p};
    before = p;
    p += c.size;
  }
  return {end, end};
}

}  // namespace

std::string_view normal_form(NormalForm form, std::string_view text, std::string& buffer) {
  const char* p = text.data();
  const char* end = p + text.size();
  Stop stop = next_unstable(form, p, end);
  if (stop.at == end) return text;
  buffer.clear();
  std::vector<Mark> marks;
  while (stop.at < end) {
    buffer.append(p, stop.before);
    // The stretch ends before a stable character that is followed by another stable one.
    const char* q = stop.at;
    while (q < end) {
      const Char c = decode(q);
      if (!is_unstable(form, c.code)) break;
      q += c.size;
    }
    normalize(traits_of(form), {stop.before, static_cast<size_t>(q - stop.before)}, marks, buffer);
    p = q;
    stop = next_unstable(form, p, end);
  }
  buffer.append(p, end);
  return buffer;
}

}  // namespace hlat::tokenizer
