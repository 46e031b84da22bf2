// Tokens that are looked for in the text itself, before it is cut into words: the leftmost first, the longest of those.
#pragma once

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hlat::tokenizer {

struct AddedToken {
  std::string text;
  int32_t id = 0;
  bool single_word = false;  // only where no part of a word stands next to it
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // and after it
};

class AddedTokens {
 public:
  AddedTokens() = default;
  // `space_is_mark`: in the text to come a space stands for U+2581, which is not white space.
  AddedTokens(std::vector<AddedToken> tokens, bool space_is_mark);

  bool empty() const { return tokens_.empty(); }
  size_t longest() const { return longest_; }  // bytes
  // A token's text begins, ends or lies across `at`, or one might with other text on the far side.
  bool touches(std::string_view text, size_t at) const;

  // Calls token(id) for each found one and piece(text) for what is between them.
  template <class Piece, class Token>
  void split(std::string_view text, const Piece& piece, const Token& token) const {
    size_t done = 0;
    for (size_t from = 0; from < text.size();) {
      const Match m = find(text, from);
      if (m.token == nullptr) break;
      from = m.at + m.token->text.size();
      if (!stands_alone(text, m)) continue;
      const size_t begin = m.token->lstrip ? std::max(done, space_before(text, m.at)) : m.at;
      const size_t end = m.token->rstrip ? space_after(text, from) : from;
      if (done < begin) piece(text.substr(done, begin - done));
      token(m.token->id);
      done = end;
    }
    if (done < text.size()) piece(text.substr(done));
  }

 private:
  struct Match {
    const AddedToken* token = nullptr;
    size_t at = 0;
  };
  Match find(std::string_view text, size_t from) const;
  const AddedToken* longest_at(std::string_view text, size_t at) const;
  bool stands_alone(std::string_view text, const Match& m) const;
  size_t space_before(std::string_view text, size_t at) const;
  size_t space_after(std::string_view text, size_t at) const;
  bool is_space(uint32_t code) const;

  std::vector<AddedToken> tokens_;  // by first byte, the longest first
  std::vector<uint32_t> first_;     // of the 256 first bytes, where its tokens start; 257 entries
  std::bitset<65536> starts_;       // two bytes that a token starts with
  std::string first_bytes_;         // the different ones
  size_t longest_ = 0;
  bool space_is_mark_ = false;
};

}  // namespace hlat::tokenizer
