// Ids of texts that come one after the other and begin alike, as the requests of a task do: few-shot examples and the question stay, the
// end differs. What a text has in common with the one before it is encoded once. The ids are those of Encoder::encode.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/tokenizer.h"

namespace hlat {

class PrefixEncoder {
 public:
  explicit PrefixEncoder(const Tokenizer& tokenizer) : encoder_(tokenizer.encoder()) {}  // the tokenizer must outlive this

  const std::vector<int32_t>& encode(std::string_view text);  // until the next call

 private:
  struct Mark {
    size_t bytes = 0, ids = 0;  // the text can be cut here: so many ids come before
  };
  size_t keep_common(std::string_view text);  // bytes whose ids stay

  std::unique_ptr<Encoder> encoder_;
  std::string text_;
  std::vector<int32_t> ids_;
  std::vector<Mark> marks_;  // of text_
};

}  // namespace hlat
