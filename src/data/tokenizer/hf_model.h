// The model section of tokenizer.json.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "data/tokenizer/bpe_model.h"
#include "data/tokenizer/json_node.h"
#include "data/tokenizer/vocab.h"

namespace hlat::tokenizer {

struct ModelSection {
  enum Kind { bpe, unigram } kind = bpe;
  Vocab vocab;
  BpeOptions options;  // of a unigram model only what concerns unknown characters
  struct Merge {
    int32_t a;
    int32_t b;
    int32_t id;
  };
  std::vector<Merge> merges;   // of BPE
  std::vector<double> scores;  // of unigram, by id

  // `ids` are the tokens that text can become, in the bytes that words have.
  std::unique_ptr<WordModel> make(const IdMap& ids, const std::array<int32_t, 256>& byte_tokens) const;
};

ModelSection read_model(const JsonNode& node);

}  // namespace hlat::tokenizer
