// Runs the steps, each from one buffer to the other.
#include "data/tokenizer/normalizer.h"

#include <algorithm>

#include "data/tokenizer/categories.h"
#include "data/tokenizer/unicode.h"
#include "data/tokenizer/vocab.h"

namespace hlat::tokenizer {
namespace {

// Calls put(code) for each character.
template <class Put>
void each_character(std::string_view text, const Put& put) {
  for (const char *p = text.data(), *end = p + text.size(); p < end;) {
    const unicode::Char c = unicode::decode(p);
    p += c.size;
    put(c.code);
  }
}

bool nmt_removes(uint32_t c) { return (c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F; }

bool nmt_makes_space(uint32_t c) {
  return c == '\t' || c == '\n' || c == 0xC || c == '\r' || c == 0x1680 || (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 ||
         c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
}

std::string_view strip(std::string_view text, bool left, bool right) {
  const auto is_space = [](const unicode::Char& c) { return unicode::kind(c.code) == unicode::kSpace; };
  while (left && !text.empty() && is_space(unicode::decode(text.data()))) text.remove_prefix(unicode::decode(text.data()).size);
  while (right && !text.empty()) {
    const unicode::Char c = unicode::decode_before(text.data(), text.data() + text.size());
    if (!is_space(c)) break;
    text.remove_suffix(c.size);
  }
  return text;
}

void replace_matches(const NormalizerStep& step, std::string_view text, std::string& out) {
  Regex::Search search(*step.pattern);
  Regex::Range m{};
  size_t done = 0;
  for (size_t from = 0; from <= text.size() && search.find(text, from, m);) {
    out.append(text, done, m.begin - done).append(step.to);
    done = m.end;
    from = Regex::after(text, m);
  }
  out.append(text, done);
}

// What the step makes of the text: the text itself, a part of it, or `out`.
std::string_view run(const NormalizerStep& step, std::string_view text, bool continues, std::string& out) {
  if (step.kind == NormalizerStep::form) return normal_form(step.normal_form, text, out);
  if (step.kind == NormalizerStep::strip) return strip(text, step.left, step.right);
  if (step.kind == NormalizerStep::replace && text.find(step.from) == std::string_view::npos) return text;
  if (step.kind == NormalizerStep::prepend && (continues || text.empty())) return text;
  out.clear();
  switch (step.kind) {
    case NormalizerStep::form:
    case NormalizerStep::strip: break;
    case NormalizerStep::lowercase: each_character(text, [&](uint32_t c) { unicode::append_lower(out, c); }); break;
    case NormalizerStep::strip_accents:
      each_character(text, [&](uint32_t c) {
        if (!unicode::is_accent(c)) unicode::append(out, c);
      });
      break;
    case NormalizerStep::nmt:
      each_character(text, [&](uint32_t c) {
        if (!nmt_removes(c)) unicode::append(out, nmt_makes_space(c) ? uint32_t{' '} : c);
      });
      break;
    case NormalizerStep::prepend: out.append(step.to).append(text); break;
    case NormalizerStep::replace: out = replace_all(text, step.from, step.to); break;
    case NormalizerStep::replace_pattern: replace_matches(step, text, out); break;
  }
  return out;
}

}  // namespace

std::string_view unmark_spaces(std::string_view text, std::string& buffer) {
  if (text.find(kSpaceMark) == std::string_view::npos) return text;
  buffer = replace_all(text, kSpaceMark, " ");
  return buffer;
}

std::string_view Normalizer::apply(std::string_view text, bool continues, Buffers& buffers) const {
  if (text.empty()) return text;
  size_t next = 0;  // the buffer that `text` is not in
  const auto take = [&](std::string_view result) {
    const std::string& buffer = buffers[next];
    if (result.data() >= buffer.data() && result.data() < buffer.data() + buffer.size()) next = 1 - next;
    text = result;
  };
  for (const NormalizerStep& s : steps) take(run(s, text, continues, buffers[next]));
  if (marks_spaces) take(unmark_spaces(text, buffers[next]));
  return text;
}

}  // namespace hlat::tokenizer
