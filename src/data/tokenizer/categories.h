// Unicode properties beyond the traits of unicode.h, for patterns and normalizers: as the reference libraries have them
// (unicode_categories.inc), whatever version of Unicode other libraries on the machine follow.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hlat::tokenizer::unicode {

struct CodeRange {
  uint32_t first;
  uint32_t last;
  bool operator==(const CodeRange&) const = default;
};

// What \p{name} matches, sorted: a general category ("Lu"), a group of them ("L") or the script Han; nothing for other names.
std::optional<std::vector<CodeRange>> property_ranges(std::string_view name);

bool is_punctuation(uint32_t c);  // as the Punctuation pre-tokenizer has it
bool is_accent(uint32_t c);       // as the StripAccents normalizer has it
void append_lower(std::string& out, uint32_t c);
std::span<const uint32_t> compatibility(uint32_t c);  // its full compatibility decomposition; empty where it has none of its own

}  // namespace hlat::tokenizer::unicode
