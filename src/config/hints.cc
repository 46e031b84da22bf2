#include "config/hints.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cmath>

#include "config/foreign.h"
#include "config/nearest.h"
#include "config/value.h"

namespace hlat {
namespace {

std::string did_you_mean(std::string_view text) { return fmt::format("; did you mean {}?", text); }

// The list that other separators may have meant: "8 16" and "8;16".
std::string list_hint(const Field& f, std::string_view text) {
  std::string commas;
  for (const char c : text) {
    const bool separator = c == ' ' || c == ';' || c == ':' || c == '/' || c == ',';
    if (!separator) commas += c;
    if (separator && !commas.ends_with(", ")) commas += ", ";
  }
  if (!commas.starts_with('[')) commas = "[" + commas + "]";
  return commas != "[]" && accepts(f, commas) ? did_you_mean(commas) : "";
}

// Integers in the forms that people write large ones in: 1e9, 10k, 1.5B, 1_000_000, 100.0.
std::string integer_hint(const Field& f, std::string_view text) {
  std::string digits;
  for (const char c : text)
    if (c != '_' && c != ',' && c != ' ') digits += c;
  if (digits.empty()) return "";
  double scale = 1;
  switch (std::tolower(static_cast<unsigned char>(digits.back()))) {
    case 'k': scale = 1e3; break;
    case 'm': scale = 1e6; break;
    case 'b':
    case 'g': scale = 1e9; break;
    case 't': scale = 1e12; break;
    default: break;
  }
  if (scale > 1) digits.pop_back();
  double value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  value = std::round(value * scale * 1e3) / 1e3;  // 1.1B is whole, its product is not
  if (error != std::errc() || stop != end || std::abs(value) >= 9e18 || value != std::floor(value)) return "";
  const std::string whole = fmt::format("{}", static_cast<int64_t>(value));
  return accepts(f, whole) ? did_you_mean(whole) : "";
}

std::string bool_hint(std::string_view text) {
  std::string word;
  for (const char c : text) word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (word == "yes" || word == "on" || word == "1" || word == "true") return did_you_mean("true");
  if (word == "no" || word == "off" || word == "0" || word == "false") return did_you_mean("false");
  return "";
}

}  // namespace

std::string hint(const Field& f, std::string_view text) {
  if (is_list(f)) return list_hint(f, text);
  if (f.key() == "data.sources") return fmt::format("; the path of its first item is given as data.sources[0].path={}", text);
  if (const std::string theirs = foreign_value(f.key(), text); !theirs.empty()) return "; " + theirs;
  if (std::holds_alternative<bool*>(f.value))
    if (const std::string meant = bool_hint(text); !meant.empty()) return meant;
  if (std::holds_alternative<int64_t*>(f.value) || std::holds_alternative<uint64_t*>(f.value)) return integer_hint(f, text);
  const std::string_view best = nearest(text, words_of(f));
  // "every:0" is near "every:K", but naming that would not help.
  return best.empty() || best == "every:K" ? "" : did_you_mean(best);
}

}  // namespace hlat
