// Look-ups in the generated tables.
#include "data/tokenizer/categories.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "data/tokenizer/unicode.h"

namespace hlat::tokenizer::unicode {
namespace {

struct CategoryRun {
  uint32_t first;
  uint8_t category;
};

struct Compatibility {
  uint32_t code;
  uint16_t at;  // in kCompatibilityCodes
  uint8_t count;
};

struct LowerCase {
  uint32_t code;
  uint32_t first;
  uint32_t second;  // 0: none
};

#include "data/tokenizer/unicode_categories.inc"

// By the numbers of the table.
constexpr std::array<std::string_view, 29> kNames = {"Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd",
                                                     "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm",
                                                     "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Co"};
constexpr uint32_t kLastCode = 0x10FFFF;

template <size_t N>
bool is_in(const TraitRange (&ranges)[N], uint32_t c) {
  const auto* r = std::lower_bound(std::begin(ranges), std::end(ranges), c, [](const TraitRange& a, uint32_t b) { return a.last < b; });
  return r != std::end(ranges) && c >= r->first;
}

template <class Row, size_t N>
const Row* row_of(const Row (&rows)[N], uint32_t c) {
  const auto* r = std::lower_bound(std::begin(rows), std::end(rows), c, [](const Row& a, uint32_t b) { return a.code < b; });
  return r != std::end(rows) && r->code == c ? r : nullptr;
}

void append_range(std::vector<CodeRange>& out, CodeRange range) {
  if (!out.empty() && out.back().last + 1 == range.first)
    out.back().last = range.last;
  else
    out.push_back(range);
}

}  // namespace

std::optional<std::vector<CodeRange>> property_ranges(std::string_view name) {
  std::vector<CodeRange> out;
  if (name == "Han") {
    for (const TraitRange& r : kHan) out.push_back({r.first, r.last});
    return out;
  }
  const bool group = name.size() == 1;
  const auto wanted = [&](std::string_view category) { return group ? category[0] == name[0] : category == name; };
  if (std::none_of(kNames.begin(), kNames.end(), wanted)) return std::nullopt;
  for (size_t i = 0; i < std::size(kCategoryRuns); ++i) {
    if (!wanted(kNames[kCategoryRuns[i].category])) continue;
    const uint32_t last = i + 1 < std::size(kCategoryRuns) ? kCategoryRuns[i + 1].first - 1 : kLastCode;
    append_range(out, {kCategoryRuns[i].first, last});
  }
  return out;
}

bool is_punctuation(uint32_t c) { return is_in(kPunctuation, c); }
bool is_accent(uint32_t c) { return is_in(kAccents, c); }

void append_lower(std::string& out, uint32_t c) {
  const LowerCase* row = row_of(kLowerCase, c);
  append(out, row != nullptr ? row->first : c);
  if (row != nullptr && row->second != 0) append(out, row->second);
}

std::span<const uint32_t> compatibility(uint32_t c) {
  const Compatibility* row = row_of(kCompatibility, c);
  if (row == nullptr) return {};
  return {&kCompatibilityCodes[row->at], row->count};
}

}  // namespace hlat::tokenizer::unicode
