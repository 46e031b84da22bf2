// A model that makes ids of words. A WordModel is part of a loaded tokenizer and shared by all threads; a WordEncoder is one thread's
// working memory for it and must not outlive it.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace hlat::tokenizer {

class WordEncoder {
 public:
  virtual ~WordEncoder() = default;
  virtual void encode(std::string_view word, std::vector<int32_t>& ids) = 0;  // replaces `ids`
};

class WordModel {
 public:
  virtual ~WordModel() = default;
  virtual std::unique_ptr<WordEncoder> encoder() const = 0;
};

}  // namespace hlat::tokenizer
