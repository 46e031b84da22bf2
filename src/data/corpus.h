// The embedded corpus: endless tiny stories from a grammar in corpus.cc, deterministic by seed, with exactly known
// entropy per token. It gives an example run a floor that its loss can be held against.
#pragma once

#include "data/grammar.h"
#include "data/word_tokenizer.h"

namespace hlat {

class EmbeddedCorpus : public DocumentSource {
 public:
  explicit EmbeddedCorpus(uint64_t seed);

  // A pure function of (seed, index); index below 2^54.
  Document document(uint64_t index) const override;

  const WordTokenizer& tokenizer() const { return tokenizer_; }
  const Grammar& grammar() const { return grammar_; }
  // Nats: the entropy of a document over its expected length. No model that sees whole documents has a lower loss.
  double entropy_per_token() const { return grammar_.document_entropy() / grammar_.expected_length(); }

 private:
  uint64_t seed_;
  Grammar grammar_;
  WordTokenizer tokenizer_;
};

}  // namespace hlat
