// A BPE model: a word's bytes or characters to ids. What a "word" is, others decide (pre_tokenizer.h).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/merges.h"
#include "data/tokenizer/vocab.h"
#include "data/tokenizer/word_model.h"

namespace hlat::tokenizer {

struct BpeOptions {
  bool bytes = false;          // symbols are bytes, else characters
  bool whole_first = false;    // a word that is a token stays whole, whatever the merges would make of it
  bool byte_fallback = false;  // a character without a token becomes the tokens of its bytes
  bool space_is_mark = false;  // in words a space stands for U+2581 (normalizer.h)
  bool fuse_unknown = false;   // neighbours without a token become one unknown
  int32_t unknown = -1;        // id; -1: what has no token is left out
};

class BpeModel final : public WordModel {
 public:
  // `ids` are the tokens that text can become, in the bytes that words have.
  BpeModel(const BpeOptions& options, const IdMap& ids, PairTable pairs, const std::array<int32_t, 256>& byte_tokens);

  std::unique_ptr<WordEncoder> encoder() const override;
  // Replaces `ids` by those of a word.
  void encode(std::string_view word, Merger& merger, std::vector<int32_t>& ids) const;

 private:
  void symbols_of_bytes(std::string_view word, std::vector<int32_t>& ids) const;
  void symbols_of_characters(std::string_view word, std::vector<int32_t>& ids) const;
  bool bytes_of(std::string_view character, std::vector<int32_t>& ids) const;

  BpeOptions options_;
  int32_t whole(std::string_view word) const;  // the token that the word is, -1 for none

  // Tokens by their bytes: open addressing, a token's bytes in one arena.
  struct Whole {
    uint32_t hash = 0;
    int32_t id = -1;
    uint32_t at = 0;
    uint32_t size = 0;
  };
  std::vector<Whole> whole_;
  std::string whole_bytes_;
  PairTable pairs_;
  std::array<int32_t, 256> byte_tokens_;  // the byte fallback's; -1: none
  std::array<int32_t, 256> of_byte_{};
  std::vector<int32_t> of_char_;  // by code point, as far as the tokens go
};

// The ids of single bytes, as "<0x0A>" spells them.
std::array<int32_t, 256> find_byte_tokens(const Vocab& vocab);

// Merges of a vocabulary without a list of them: two tokens whose bytes together are a token merge to it, with its rank.
// Cut between characters, or between any bytes.
struct RankedToken {
  std::string bytes;
  int32_t id;
  uint32_t rank;
};
PairTable pairs_of_ranked(const std::vector<RankedToken>& tokens, const IdMap& ids, bool any_byte);

}  // namespace hlat::tokenizer
