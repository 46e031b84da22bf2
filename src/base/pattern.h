// Regular expressions, run by PCRE2's JIT. Patterns and texts are UTF-8, which the caller vouches for; \s, \w, \b and the like are
// Unicode's. A Pattern may be used by many threads, each with a Search of its own.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hlat {

class Pattern {
 public:
  explicit Pattern(const std::string& text) : Pattern(text, text) {}  // an Error says what is wrong with it
  Pattern(const std::string& text, const std::string& shown);         // `shown` stands for it in messages
  ~Pattern();
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;

  size_t groups() const;                                             // (...) that capture
  const std::vector<std::pair<std::string, size_t>>& names() const;  // of (?<name>...), with their numbers

  struct Range {
    size_t begin;
    size_t end;
  };

  // One thread's working memory for matches of one pattern.
  class Search {
   public:
    enum class Captures : bool { left_out, kept };  // whether group() will be asked for
    explicit Search(const Pattern& pattern, Captures captures = Captures::left_out);
    ~Search();
    Search(Search&&) noexcept;
    Search& operator=(Search&&) = delete;
    // The first match at or after `from`; false when there is none.
    bool find(std::string_view text, size_t from, Range& match);
    std::optional<Range> group(size_t number) const;  // of the last match, from 1; nothing where it took no part

   private:
    struct Memory;
    std::unique_ptr<Memory> memory_;
  };

  // Where to look for the match after this one: behind it, and past a character where it is empty. May be text.size() + 1: the end.
  static size_t after(std::string_view text, const Range& match) {
    if (match.end > match.begin) return match.end;
    size_t at = match.end + 1;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0u) == 0x80u) ++at;
    return at;
  }

 private:
  struct Code;
  std::unique_ptr<Code> code_;
};

}  // namespace hlat
