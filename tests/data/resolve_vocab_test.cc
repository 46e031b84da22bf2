// model.vocab: auto is the tokenizer's number of tokens, rounded up to a multiple of 64.
#include "data/resolve_vocab.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "config/load.h"
#include "config/print.h"
#include "data/embedded/corpus.h"
#include "support/message_of.h"
#include "support/tokenizer_golden.h"

namespace hlat::test {
namespace {

Config with(const std::vector<std::string>& words) { return load_config("", words).config; }

TEST(ResolveVocab, OfATokenizerRoundedUp) {
  Config config = with({"model.vocab=auto", "data.tokenizer=" + tokenizer_fixture("gpt2.json"), "data.sources[0].path=none.txt"});
  EXPECT_EQ(config.model.vocab, 0);
  resolve_vocab(config);
  EXPECT_EQ(config.model.vocab, 448);  // of 420
  EXPECT_NE(to_yaml(config).find("vocab: 448"), std::string::npos);
}

TEST(ResolveVocab, OfTheEmbeddedCorpus) {
  Config config = with({"model.vocab=auto"});
  resolve_vocab(config);
  const int64_t tokens = EmbeddedCorpus(config.data.seed).tokenizer().vocab_size();
  EXPECT_GE(config.model.vocab, tokens);
  EXPECT_LT(config.model.vocab, tokens + kVocabMultiple);
  EXPECT_EQ(config.model.vocab % kVocabMultiple, 0);
}

TEST(ResolveVocab, ANumberStaysAndNothingIsRead) {
  Config config = with({"model.vocab=1000", "data.tokenizer=no/such/file.json", "data.sources[0].path=none.txt"});
  resolve_vocab(config);
  EXPECT_EQ(config.model.vocab, 1000);
  config.model.vocab = 0;
  EXPECT_THROW(resolve_vocab(config), UsageError);
}

TEST(ResolveVocab, WithoutDataItSaysWhatToGive) {
  Config config = with({"model.vocab=auto", "data.embedded=false"});
  EXPECT_EQ(message_of([&] { resolve_vocab(config); }),
            "model.vocab = auto: no data is named whose tokenizer would tell; name data.sources, or give a number");
}

}  // namespace
}  // namespace hlat::test
