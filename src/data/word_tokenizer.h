// A word-level tokenizer for a closed vocabulary: id 0 ends a document (a line break in text), ids 1.. are words,
// names and punctuation marks. Two tokens stand for the opening and the closing quotation mark (`` and '' in the word
// list, " in text), so spacing follows from a token and the one before it, wherever a text starts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace hlat {

class WordTokenizer {
 public:
  static constexpr int32_t kEos = 0;
  static constexpr std::string_view kOpenQuote = "``", kCloseQuote = "''";

  explicit WordTokenizer(std::vector<std::string> words);  // words[i] gets id i + 1

  int64_t vocab_size() const { return static_cast<int64_t>(words_.size()) + 1; }
  std::vector<int32_t> encode(std::string_view text) const;   // Error on a word outside the vocabulary
  std::string decode(std::span<const int32_t> tokens) const;  // an id outside the vocabulary becomes <id>

 private:
  std::vector<std::string> words_;
  std::unordered_map<std::string, int32_t> ids_;
};

}  // namespace hlat
