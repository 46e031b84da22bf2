// Steps that are not hand-written scanners.
#include "data/tokenizer/pre_tokenizer.h"

#include <algorithm>

#include "data/tokenizer/categories.h"
#include "data/tokenizer/normalizer.h"

namespace hlat::tokenizer {

Joints::Joints(const IdMap& ids, bool bytes_for_unknown) {
  const auto ascii = [](int c) { return c < 0x80; };
  const auto unknown = [&](int c) { return ascii(c) && !bytes_for_unknown && !ids.contains(std::string(1, static_cast<char>(c))); };
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b)
      if (!ascii(a) || !ascii(b) || unknown(a) || unknown(b)) joined_.set(at(static_cast<char>(a), static_cast<char>(b)));
  }
  for (const auto& [token, id] : ids)
    for (size_t i = 1; i < token.size(); ++i) joined_.set(at(token[i - 1], token[i]));
  for (int a = 0; a < 256; ++a)
    if (a != ' ') joined_.reset(at(static_cast<char>(a), ' '));
}

SplitStep step_of_pattern(const std::string& pattern) {
  if (pattern == patterns::kGpt2) return {.kind = SplitStep::gpt2};
  if (pattern == patterns::kLlama3) return {.kind = SplitStep::llama3};
  if (pattern == patterns::kQwen2) return {.kind = SplitStep::qwen2};
  return {.kind = SplitStep::regex, .pattern = std::make_shared<const Regex>(pattern), .at_space = patterns::at_space(pattern)};
}

Splitter::Splitter(const std::vector<SplitStep>& steps) : steps_(steps), fragments_(steps.size()), buffers_(steps.size()) {
  for (const SplitStep& s : steps)
    if (s.kind == SplitStep::regex) searches_.emplace_back(*s.pattern);
}

const char* Splitter::next_digits(const char* p, const char* end, bool single) {
  const auto is_digit = [](const char* c) { return unicode::is_digit(unicode::decode(c).code); };
  const bool digit = is_digit(p);
  p += unicode::decode(p).size;
  if (digit && single) return p;
  while (p < end && is_digit(p) == digit) p += unicode::decode(p).size;
  return p;
}

std::string_view Splitter::rewritten(size_t at, std::string_view text) {
  std::string& buffer = buffers_[at];
  const SplitStep& s = steps_[at];
  if (s.kind == SplitStep::spell_bytes) {
    buffer.clear();
    for (const char c : text) buffer += printable_of_byte(static_cast<uint8_t>(c));
    return buffer;
  }
  if (s.kind == SplitStep::read_bytes) return buffer = *bytes_of_printable(text);
  const bool first = text.data() == origin_;
  const bool wanted =
      s.prefix == SplitStep::Prefix::always || (s.prefix == SplitStep::Prefix::first && first && start_ == TextStart::document);
  const bool continues = first && start_ == TextStart::continued;
  if (s.kind == SplitStep::unmark) text = unmark_spaces(text, buffer);
  if (!wanted || continues || text.starts_with(' ')) return text;
  if (text.data() == buffer.data())
    buffer.insert(buffer.begin(), ' ');
  else
    buffer.assign(" ").append(text);
  return buffer;
}

// Calls add(begin, end) for what matches, in order.
template <class Add>
void Splitter::find_matches(size_t at, std::string_view text, const Add& add) {
  if (steps_[at].kind != SplitStep::regex) {
    const bool space = steps_[at].kind == SplitStep::white_space;
    for (size_t i = 0; i < text.size();) {
      const unicode::Char c = unicode::decode(text.data() + i);
      if (space ? unicode::kind(c.code) == unicode::kSpace : unicode::is_punctuation(c.code)) add(i, i + c.size);
      i += c.size;
    }
    return;
  }
  const auto before = steps_.begin() + static_cast<ptrdiff_t>(at);
  const auto index = std::count_if(steps_.begin(), before, [](const SplitStep& s) { return s.kind == SplitStep::regex; });
  Regex::Search& search = searches_[static_cast<size_t>(index)];
  Regex::Range m{};
  for (size_t from = 0; from <= text.size() && search.find(text, from, m);) {
    add(m.begin, m.end);
    from = Regex::after(text, m);
  }
}

void Splitter::find_fragments(size_t at, std::string_view text) {
  const SplitStep& s = steps_[at];
  std::vector<Fragment>& out = fragments_[at];
  out.clear();
  bool last_match = false;
  const auto add = [&](size_t begin, size_t end, bool match) {
    if (begin == end) return;
    match ^= s.invert;
    const bool join_previous = s.behavior == SplitBehavior::with_previous && match && !last_match && !out.empty();
    const bool join_next = s.behavior == SplitBehavior::with_next && !match && last_match;
    const bool join_same = s.behavior == SplitBehavior::contiguous && !out.empty() && match == last_match;
    if (join_previous || join_next || join_same)
      out.back().end = end;
    else if (s.behavior != SplitBehavior::removed || !match)
      out.push_back({begin, end, match});
    last_match = match;
  };
  size_t done = 0;
  find_matches(at, text, [&](size_t begin, size_t end) {
    add(done, begin, false);
    add(begin, end, true);
    done = end;
  });
  add(done, text.size(), false);
}

}  // namespace hlat::tokenizer
