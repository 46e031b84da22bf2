// A unigram model: of all ways to write a word as tokens the one with the highest sum of scores.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "data/tokenizer/merges.h"
#include "data/tokenizer/vocab.h"
#include "data/tokenizer/word_model.h"

namespace hlat::tokenizer {

struct UnigramOptions {
  int32_t unknown = -1;        // id; -1: what has no token is left out
  bool byte_fallback = false;  // what has no token becomes the tokens of its bytes
  bool space_is_mark = false;  // in words a space stands for U+2581 (normalizer.h)
};

class UnigramModel final : public WordModel {
 public:
  // `ids` are the tokens that text can become, in the bytes that words have; `scores` by id, of the whole vocabulary.
  UnigramModel(const UnigramOptions& options, const IdMap& ids, std::vector<double> scores, const std::array<int32_t, 256>& byte_tokens);
  std::unique_ptr<WordEncoder> encoder() const override;

  // The best way to reach a place of the word.
  struct Step {
    double score = 0;
    size_t from = 0;
    int32_t id = -1;
    bool reached = false;
  };
  // Replaces `ids` by those of a word; `steps` is working memory.
  void encode(std::string_view word, std::vector<Step>& steps, std::vector<int32_t>& ids) const;

 private:
  void find_best(std::string_view word, std::vector<Step>& steps) const;
  void append_unknown(std::string_view text, std::vector<int32_t>& reversed) const;

  UnigramOptions options_;
  PairTable trie_;  // node and byte -> the token that ends there (a rank) and the next node (an id)
  std::vector<double> scores_;
  double unknown_score_ = 0;
  std::array<int32_t, 256> byte_tokens_;
};

}  // namespace hlat::tokenizer
