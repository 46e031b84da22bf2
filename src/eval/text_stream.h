// Token ids to text as they come. What is handed out is final: whole characters only, and nothing that may turn out to be the beginning of
// a stop string. The pieces together are the decoded ids, each ill-formed part of them as U+FFFD, up to the stop string that is complete
// first. The tokens that begin and end documents add nothing.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "data/tokenizer/tokenizer.h"

namespace hlat {

class TextStream {
 public:
  // The text goes on after the tokens `before`: the blank between them, which tokenizers drop at the beginning of a text, is part of it.
  // With none it is a text of its own. The tokenizer must outlive this; stop strings are UTF-8 and not empty.
  TextStream(const Tokenizer& tokenizer, std::vector<std::string> stop, std::span<const int32_t> before = {});

  std::string add(int32_t id);               // what is certain with it
  std::string finish();                      // what was held back, when no more tokens come
  bool stopped() const { return stopped_; }  // a stop string is complete: the text is over

 private:
  std::string decoded(int32_t id);
  void shorten(const std::string& text);
  std::string whole_characters(bool all);
  std::string before_stop(const std::string& text);

  const Tokenizer& tokenizer_;
  std::vector<std::string> stop_;
  // Whatever tokenizers do to the beginning of a text ends within its first tokens that show any. So what a token adds can be told from
  // the last few.
  std::vector<int32_t> window_;
  size_t shown_ = 0;    // bytes of the decoded window that are in bytes_ or before
  std::string unsure_;  // the rest of it: U+FFFD, by which some tokenizers stand for a character whose bytes are not yet all there
  std::string bytes_;   // decoded, but no whole character
  std::string held_;    // characters that may begin a stop string
  bool stopped_ = false;
};

}  // namespace hlat
