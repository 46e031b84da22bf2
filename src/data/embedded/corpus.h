// The embedded corpus: endless tiny stories from a grammar in corpus.cc, deterministic by seed, with exactly known
// entropy per token. It gives an example run a floor that its loss can be held against.
#pragma once

#include "data/embedded/grammar.h"
#include "data/embedded/word_tokenizer.h"

namespace hlat {

class EmbeddedCorpus : public DocumentSource {
 public:
  explicit EmbeddedCorpus(uint64_t seed);

  // A pure function of (seed, index); index below 2^54.
  Document document(uint64_t index) const;

  const std::string& name() const override { return name_; }
  uint64_t documents() const override { return 0; }
  uint64_t hash(uint64_t index) const override;  // the index stands for the text: equal stories practically never come twice
  uint64_t size(uint64_t) const override { return 0; }
  uint64_t bytes() const override { return 0; }
  std::unique_ptr<DocumentReader> reader() const override;
  // The entropy of a document over its expected length.
  std::optional<double> entropy() const override { return grammar_.document_entropy() / grammar_.expected_length(); }
  std::vector<uint64_t> identity() const override { return {seed_}; }
  std::string part_name(size_t) const override { return "the embedded corpus"; }

  const WordTokenizer& tokenizer() const { return tokenizer_; }
  const Grammar& grammar() const { return grammar_; }

 private:
  std::string name_ = "embedded";
  uint64_t seed_;
  Grammar grammar_;
  WordTokenizer tokenizer_;
};

}  // namespace hlat
