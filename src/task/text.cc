#include "task/text.h"

#include <clocale>
#include <cwctype>
#include <memory>

#include "base/error.h"
#include "data/tokenizer/categories.h"
#include "data/tokenizer/unicode.h"

namespace hlat {
namespace {

namespace unicode = tokenizer::unicode;

bool is_space(const unicode::Char& c) { return unicode::kind(c.code) == unicode::kSpace; }

uint32_t upper(uint32_t c) {
  static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  HLAT_CHECK(locale != nullptr, "the C library has no locale C.UTF-8");
  return static_cast<uint32_t>(towupper_l(static_cast<wint_t>(c), locale));
}

// The byte where character `number` starts; the end of the text where there is none.
size_t byte_of(std::string_view text, int64_t number) {
  size_t at = 0;
  for (; number > 0 && at < text.size(); --number) at += unicode::decode(text.data() + at).size;
  return at;
}

}  // namespace

std::string_view strip(std::string_view text) {
  while (!text.empty() && is_space(unicode::decode(text.data()))) text.remove_prefix(unicode::decode(text.data()).size);
  while (!text.empty()) {
    const unicode::Char last = unicode::decode_before(text.data(), text.data() + text.size());
    if (!is_space(last)) break;
    text.remove_suffix(last.size);
  }
  return text;
}

std::string lower(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const unicode::Char c = unicode::decode(text.data() + at);
    unicode::append_lower(out, c.code);
    at += c.size;
  }
  return out;
}

std::string capitalize(std::string_view text) {
  if (text.empty()) return "";
  const unicode::Char first = unicode::decode(text.data());
  std::string out;
  unicode::append(out, upper(first.code));
  return out + lower(text.substr(first.size));
}

std::string without_punctuation(std::string_view text) {
  constexpr std::string_view kPunctuation = R"(!"#$%&'()*+,-./:;<=>?@[\]^_`{|}~)";
  std::string out;
  for (const char c : text)
    if (kPunctuation.find(c) == std::string_view::npos) out += c;
  return out;
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  HLAT_CHECK(!from.empty(), "nothing to be replaced");
  std::string out;
  size_t done = 0;
  for (size_t at = text.find(from); at != std::string_view::npos; at = text.find(from, done)) {
    out.append(text, done, at - done).append(to);
    done = at + from.size();
  }
  return out.append(text, done);
}

int64_t characters(std::string_view text) {
  int64_t count = 0;
  for (const char c : text) count += unicode::is_continuation(c) ? 0 : 1;
  return count;
}

int64_t pieces_between_spaces(std::string_view text) {
  int64_t runs = 0;
  bool in_run = false;
  for (size_t at = 0; at < text.size();) {
    const unicode::Char c = unicode::decode(text.data() + at);
    runs += is_space(c) && !in_run ? 1 : 0;
    in_run = is_space(c);
    at += c.size;
  }
  return runs + 1;
}

std::string_view slice(std::string_view text, int64_t begin, int64_t end) {
  const int64_t size = characters(text);
  if (begin < 0) begin = std::max<int64_t>(begin + size, 0);
  if (end < 0) end = std::max<int64_t>(end + size, 0);
  const size_t first = byte_of(text, begin);
  return text.substr(first, byte_of(text.substr(first), std::max<int64_t>(end - begin, 0)));
}

}  // namespace hlat
