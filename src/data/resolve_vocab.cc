// The tokenizer is loaded for its size alone.
#include "data/resolve_vocab.h"

#include "base/error.h"
#include "data/embedded/corpus.h"
#include "data/tokenizer/tokenizer.h"

namespace hlat {
namespace {

int64_t tokens_of(const DataConfig& data) {
  if (!data.sources.empty()) return load_tokenizer_of(data)->vocab_size();
  if (!data.embedded)
    throw UsageError("model.vocab = auto: no data is named whose tokenizer would tell; name data.sources, or give a number");
  return EmbeddedCorpus(data.seed).tokenizer().vocab_size();
}

}  // namespace

void resolve_vocab(Config& config) {
  if (config.model.vocab != 0) return;
  config.model.vocab = (tokens_of(config.data) + kVocabMultiple - 1) / kVocabMultiple * kVocabMultiple;
}

}  // namespace hlat
