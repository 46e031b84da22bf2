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

#include "data/tokenizer/tokenizer.h"

namespace hlat {

class WordTokenizer : public Tokenizer {
 public:
  static constexpr int32_t kEos = 0;
  static constexpr std::string_view kOpenQuote = "``", kCloseQuote = "''";

  explicit WordTokenizer(std::vector<std::string> words);  // words[i] gets id i + 1

  std::vector<int32_t> encode(std::string_view text) const;  // Error on a word outside the vocabulary

  std::unique_ptr<Encoder> encoder() const override;
  std::string decode(std::span<const int32_t> tokens) const override;
  int64_t vocab_size() const override { return static_cast<int64_t>(words_.size()) + 1; }
  std::optional<int32_t> id_of(std::string_view token) const override;
  std::optional<int32_t> eos() const override { return kEos; }
  std::optional<int32_t> bos() const override { return std::nullopt; }
  bool is_fallback(int32_t) const override { return false; }
  std::string describe() const override;
  uint64_t fingerprint() const override;

 private:
  std::vector<std::string> words_;
  std::unordered_map<std::string, int32_t> ids_;
};

}  // namespace hlat
