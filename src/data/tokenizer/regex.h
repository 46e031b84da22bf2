// Patterns of tokenizer files, run by PCRE2's JIT. Files are written for other engines; a pattern is first rewritten so that
// properties and spaces are what the tables (unicode.h, categories.h) say, and what PCRE2 would read differently is an Error.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace hlat::tokenizer {

class Regex {
 public:
  enum class Dialect { tokenizer_file, pcre2 };
  explicit Regex(const std::string& pattern, Dialect dialect = Dialect::tokenizer_file);  // an Error names what is not supported
  ~Regex();
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;

  struct Range {
    size_t begin;
    size_t end;
  };

  // One thread's working memory for matches of one pattern.
  class Search {
   public:
    explicit Search(const Regex& regex);
    ~Search();
    Search(Search&&) noexcept;
    Search& operator=(Search&&) = delete;
    // The first match at or after `from` in UTF-8 text; false when there is none.
    bool find(std::string_view text, size_t from, Range& match);

   private:
    struct Memory;
    std::unique_ptr<Memory> memory_;
  };

 private:
  struct Code;
  std::unique_ptr<Code> code_;
};

}  // namespace hlat::tokenizer
