#include "data/tokenizer/regex.h"

#include <map>
#include <vector>

#include "base/error.h"
#include "data/tokenizer/categories.h"
#include "data/tokenizer/unicode.h"

namespace hlat::tokenizer {
namespace {

using unicode::CodeRange;

constexpr const char* kSpaces = R"(\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
constexpr std::string_view kPlainEscapes = R"(\/'"()[]{}.*+?|^$-&#~!@%=<>,:;` )";  // stand for the character itself
constexpr std::string_view kSharedEscapes = "rntfv";                               // the same in all engines
constexpr CodeRange kSurrogates = {0xD800, 0xDFFF};

const std::string& every_character() {
  static const std::string all = [] {
    std::string text;
    for (uint32_t c = 0; c < 0x110000; ++c)
      if (c < kSurrogates.first || c > kSurrogates.last) unicode::append(text, c);
    return text;
  }();
  return all;
}

// What PCRE2's own tables take for a property.
std::vector<CodeRange> ranges_of_pcre2(std::string_view property) {
  const Pattern pattern(fmt::format("\\p{{{}}}+", property));
  Pattern::Search search(pattern);
  const std::string& all = every_character();
  std::vector<CodeRange> out;
  Pattern::Range m{};
  for (size_t from = 0; search.find(all, from, m); from = m.end) {
    const char* end = all.data() + m.end;
    out.push_back({unicode::decode(all.data() + m.begin).code, unicode::decode_before(all.data(), end).code});
  }
  return out;
}

std::vector<bool> marked(const std::vector<CodeRange>& ranges) {
  std::vector<bool> out(0x110000, false);
  for (const CodeRange& r : ranges)
    for (uint32_t c = r.first; c <= r.last; ++c) out[c] = c < kSurrogates.first || c > kSurrogates.last;
  return out;
}

std::string spelled(const std::vector<bool>& codes) {
  std::string out;
  for (uint32_t c = 0; c < codes.size(); ++c) {
    const uint32_t first = c;
    if (!codes[c]) continue;
    while (c + 1 < codes.size() && codes[c + 1]) ++c;
    out += fmt::format("\\x{{{:X}}}", first);
    if (c > first) out += fmt::format("-\\x{{{:X}}}", c);
  }
  return out;
}

// Members of a class that holds exactly the code points of a property: PCRE2's property and what it lacks, or all of them in full
// where PCRE2 has more.
std::string members(std::string_view property, const std::vector<CodeRange>& ranges) {
  std::vector<bool> ours = marked(ranges);
  const std::vector<bool> theirs = marked(ranges_of_pcre2(property));
  for (size_t c = 0; c < ours.size(); ++c)
    if (theirs[c] && !ours[c]) return spelled(ours);
  for (size_t c = 0; c < ours.size(); ++c) ours[c] = ours[c] && !theirs[c];
  return fmt::format("\\p{{{}}}{}", property, spelled(ours));
}

// Rewrites a pattern for PCRE2, whose Unicode tables may be older or newer than those of the reference libraries, whose \s differs by a
// character and which has no classes of classes: a class in a class is a union, and [a&&[^b]] becomes (?:(?![b])[a]). Other
// intersections, and escapes that the engines read differently, are refused.
class Rewriter {
 public:
  explicit Rewriter(std::string_view pattern) : in_(pattern) {}

  std::string run() {
    while (at_ < in_.size()) {
      const char c = in_[at_];
      if (c == '\\')
        escape();
      else if (in_class_)
        class_character(c);
      else
        plain(c);
    }
    return out_;
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const { fail("pattern '{}': {} is not supported", in_, what); }

  void plain(char c) {
    if (c == '^' || c == '$') refuse("an anchor");
    if (in_.substr(at_).starts_with("}+")) refuse("a + after {}, which is possessive to some engines,");
    if (in_.substr(at_).starts_with("(?")) group();
    out_ += c;
    ++at_;
    if (c != '[') return;
    in_class_ = true;
    class_at_ = out_.size() - 1;
    if (at_ < in_.size() && in_[at_] == '^') out_ += in_[at_++];
    if (at_ < in_.size() && in_[at_] == ']') refuse("a class that starts with ]");
  }

  // What comes after (? has to mean the same everywhere.
  void group() const {
    std::string_view rest = in_.substr(at_ + 2);
    for (const std::string_view known : {":", "i:", "=", "!", "<=", "<!", ">"})
      if (rest.starts_with(known)) return;
    refuse("a group that starts with " + std::string(in_.substr(at_, 4)));
  }

  void class_character(char c) {
    if (c == '[') return inner_class();
    if (in_.substr(at_).starts_with("&&")) return difference();
    if (c == ']' && depth_ > 0) {
      --depth_;
      ++at_;
      return;
    }
    if (c == ']') return end_class();
    out_ += c;
    ++at_;
  }

  void inner_class() {
    const char next = at_ + 1 < in_.size() ? in_[at_ + 1] : ']';
    if (next == '^' || next == ':' || next == ']' || excluding_ || in_[at_ - 1] == '-') refuse("a class within a class of this kind");
    ++depth_;
    ++at_;
  }

  void difference() {
    if (!in_.substr(at_).starts_with("&&[^") || out_[class_at_ + 1] == '^' || depth_ > 0 || excluding_)
      refuse("&& of this kind in a class");
    included_ = out_.substr(class_at_) + "]";
    out_.resize(class_at_);
    out_ += "(?:(?![";
    at_ += 4;
    excluding_ = true;
  }

  void end_class() {
    out_ += ']';
    ++at_;
    in_class_ = false;
    if (!excluding_) return;
    if (at_ == in_.size() || in_[at_] != ']') refuse("&& of this kind in a class");
    out_ += ")" + included_ + ")";
    ++at_;
    excluding_ = false;
  }

  void set_of(const std::string& members, bool negated) {
    if (!in_class_)
      out_ += (negated ? "[^" : "[") + members + "]";
    else if (!negated)
      out_ += members;
    else
      refuse("a negated set in a class");
  }

  void escape() {
    if (at_ + 1 == in_.size()) refuse("a \\ at the end");
    const char c = in_[at_ + 1];
    if (c == 'p' || c == 'P') return property(c == 'P');
    if (c == 's' || c == 'S') {
      set_of(kSpaces, c == 'S');
    } else if (c == 'd') {
      set_of(members_of("Nd"), false);
    } else if (kSharedEscapes.find(c) != std::string_view::npos || kPlainEscapes.find(c) != std::string_view::npos) {
      out_ += in_.substr(at_, 2);
    } else {
      refuse(in_.substr(at_, 2));
    }
    at_ += 2;
  }

  void property(bool negated) {
    const size_t end = at_ + 2 < in_.size() && in_[at_ + 2] == '{' ? in_.find('}', at_) : std::string_view::npos;
    if (end == std::string_view::npos) refuse("a property without braces");
    std::string_view name = in_.substr(at_ + 3, end - at_ - 3);
    if (name.starts_with('^')) {
      negated = !negated;
      name.remove_prefix(1);
    }
    set_of(members_of(std::string(name)), negated);
    at_ = end + 1;
  }

  const std::string& members_of(const std::string& property) {
    const auto known = members_.find(property);
    if (known != members_.end()) return known->second;
    const auto ranges = unicode::property_ranges(property);
    if (!ranges) refuse("the property " + property);
    return members_.emplace(property, members(property, *ranges)).first->second;
  }

  std::string_view in_;
  std::string out_;
  std::map<std::string, std::string> members_;  // by property
  size_t at_ = 0;
  bool in_class_ = false;
  size_t class_at_ = 0;     // where the class starts in out_
  int depth_ = 0;           // of classes in it
  bool excluding_ = false;  // in b of [a&&[^b]]
  std::string included_;    // and its a
};

}  // namespace

Regex::Regex(const std::string& pattern) : Pattern(Rewriter(pattern).run(), pattern) {}

}  // namespace hlat::tokenizer
