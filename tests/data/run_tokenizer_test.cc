// Which tokenizer a saved model has, and whether its texts begin with the begin-of-text token.
#include "data/run_tokenizer.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/paths.h"

namespace hlat {
namespace {

const std::string kLlama2 = test::source_path("tests/fixtures/tokenizer/llama2.json");

Config with_vocab(int64_t vocab) {
  Config c;
  c.model.vocab = vocab;
  return c;
}

TEST(RunTokenizer, ATrainedModelBeginsTextsAsItWasTrainedAndAnImportedOneAsItsFileSays) {
  Config config = with_vocab(1 << 20);
  const RunTokenizer imported(config, "", kLlama2, true), given(config, kLlama2, {}, false);
  EXPECT_TRUE(imported.adds_bos());
  EXPECT_FALSE(given.adds_bos()) << "data.bos is false, whatever file is named";
  config.data.bos = true;
  EXPECT_TRUE(RunTokenizer(config, kLlama2, {}, false).adds_bos());
}

TEST(RunTokenizer, NamesWhatDoesNotBelongTogether) {
  EXPECT_THROW(RunTokenizer(with_vocab(10), "", kLlama2, true), UsageError) << "more tokens than the model";
  EXPECT_THROW(RunTokenizer(with_vocab(1 << 20), "nowhere/tokenizer.json", {}, false), UsageError);
  Config config = with_vocab(512);
  EXPECT_EQ(RunTokenizer(config, "", {}, false).name(), "the embedded corpus");
  config.data.embedded = false;
  EXPECT_THROW(RunTokenizer(config, "", {}, false), UsageError) << "the run named none";
}

}  // namespace
}  // namespace hlat
