// How text is cut into words: a list of steps, each cutting what the one before it left. A Splitter is one thread's runner of
// the list; words come out as pointers into the text or into its buffers.
#pragma once

#include <bitset>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/patterns.h"
#include "data/tokenizer/regex.h"
#include "data/tokenizer/vocab.h"
#include "data/tokenizer/word_scan.h"

namespace hlat::tokenizer {

// Which bytes stand side by side within a token. No merge reaches across two that never do, so text that nothing else cuts into
// words can be cut there without changing an id: at spaces, line breaks, between digits where numbers have no tokens.
class Joints {
 public:
  // `ids`: the tokens that text can become, where a space stands for U+2581 and only leads. `bytes_for_unknown`: a character
  // without a token becomes bytes; else neighbours without tokens become one unknown and must stay together.
  Joints(const IdMap& ids, bool bytes_for_unknown);

  // The end of the part that starts at p.
  const char* next(const char* p, const char* end) const {
    for (++p; p < end && joined_[at(p[-1], p[0])]; ++p) {
    }
    return p;
  }

 private:
  static size_t at(char a, char b) { return size_t{static_cast<uint8_t>(a)} << 8 | static_cast<uint8_t>(b); }

  std::bitset<65536> joined_;
};

// What a pattern's matches and the text between them become.
enum class SplitBehavior { isolated, removed, contiguous, with_previous, with_next };

struct SplitStep {
  enum Kind {
    gpt2,  // the hand-written scanners
    llama3,
    qwen2,
    cl100k,
    joints,        // where no token reaches across
    each_space,    // cut before every space
    regex,         // a pattern, as PCRE2 matches it
    digits,        // runs of digits and runs of the rest
    each_digit,    // single digits and runs of the rest
    punctuation,   // single signs, or as the behavior says, and runs of the rest
    white_space,   // runs of white space go, the rest stays
    spell_bytes,   // bytes become GPT-2's printable characters, for steps that look at those
    read_bytes,    // and bytes again
    prefix_space,  // only adds the prefix
    unmark,        // U+2581 becomes a space (normalizer.h), then the prefix
  } kind = gpt2;
  enum class Prefix {
    never,
    first,
    always
  } prefix = Prefix::never;  // a space where the text has none: at a document's start, or each time
  std::shared_ptr<const Joints> joint_bytes = nullptr;
  std::shared_ptr<const Regex> pattern = nullptr;
  SplitBehavior behavior = SplitBehavior::isolated;
  bool invert = false;  // what the pattern does not match counts as its match
  patterns::AtSpace at_space = patterns::AtSpace::unknown;
};

// A cut at the matches of a pattern: by a scanner where there is one for it. What is between matches is a word too.
SplitStep step_of_pattern(const std::string& pattern);

// Where a fragment of text stands: at the start of a document, after an added token, or where a document was cut.
enum class TextStart { document, later, continued };

class Splitter {
 public:
  explicit Splitter(const std::vector<SplitStep>& steps);

  // Calls word(begin, end, limit) for each word, none empty; bytes up to `limit` may be read.
  template <class Word>
  void run(std::string_view text, TextStart start, const Word& word) {
    start_ = start;
    origin_ = text.data();
    step(0, text, word);
  }

 private:
  struct Fragment {
    size_t begin;
    size_t end;
    bool match;
  };

  template <class Word>
  void step(size_t at, std::string_view text, const Word& word) {
    if (text.empty()) return;
    const char* p = text.data();
    const char* end = p + text.size();
    if (at == steps_.size()) return word(p, end, end);
    switch (steps_[at].kind) {
      case SplitStep::gpt2: return scan<scan::Gpt2>(at, p, end, word);
      case SplitStep::llama3: return scan<scan::Llama3<3>>(at, p, end, word);
      case SplitStep::qwen2: return scan<scan::Llama3<1>>(at, p, end, word);
      case SplitStep::cl100k: return scan<scan::Llama3<3, true>>(at, p, end, word);
      case SplitStep::joints:
        while (p < end) {
          const char* next = steps_[at].joint_bytes->next(p, end);
          at + 1 == steps_.size() ? word(p, next, end) : step(at + 1, {p, static_cast<size_t>(next - p)}, word);
          p = next;
        }
        return;
      case SplitStep::each_space: return scan<scan::EachSpace>(at, p, end, word);
      case SplitStep::digits:
      case SplitStep::each_digit: return scan_digits(at, p, end, word);
      case SplitStep::prefix_space:
      case SplitStep::unmark:
      case SplitStep::spell_bytes:
      case SplitStep::read_bytes: return step(at + 1, rewritten(at, text), word);
      case SplitStep::regex:
      case SplitStep::punctuation:
      case SplitStep::white_space: break;
    }
    // A step within this one may use the list of its own level only.
    find_fragments(at, text);
    for (size_t i = 0; i < fragments_[at].size(); ++i) {
      const Fragment fragment = fragments_[at][i];
      step(at + 1, text.substr(fragment.begin, fragment.end - fragment.begin), word);
    }
  }

  template <class Scanner, class Word>
  void scan(size_t at, const char* p, const char* end, const Word& word) {
    if (at + 1 == steps_.size()) {
      while (p < end) {
        const char* next = Scanner::next(p, end);
        word(p, next, end);
        p = next;
      }
      return;
    }
    while (p < end) {
      const char* next = Scanner::next(p, end);
      step(at + 1, {p, static_cast<size_t>(next - p)}, word);
      p = next;
    }
  }

  template <class Word>
  void scan_digits(size_t at, const char* p, const char* end, const Word& word) {
    while (p < end) {
      const char* next = next_digits(p, end, steps_[at].kind == SplitStep::each_digit);
      step(at + 1, {p, static_cast<size_t>(next - p)}, word);
      p = next;
    }
  }

  static const char* next_digits(const char* p, const char* end, bool single);
  std::string_view rewritten(size_t at, std::string_view text);
  void find_fragments(size_t at, std::string_view text);
  template <class Add>
  void find_matches(size_t at, std::string_view text, const Add& add);

  const std::vector<SplitStep>& steps_;
  std::vector<Regex::Search> searches_;           // one per step; of a regex step only it is used
  std::vector<std::vector<Fragment>> fragments_;  // one per step
  std::vector<std::string> buffers_;              // one per step
  TextStart start_ = TextStart::document;
  const char* origin_ = nullptr;  // of the text being cut
};

}  // namespace hlat::tokenizer
