// Texts to ids by the rules of lm-evaluation-harness: border of context and continuation, BOS, empty contexts, truncation, windows.
#include "eval/encode.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "base/rng.h"
#include "support/message_of.h"
#include "support/tokenizer_golden.h"

namespace hlat {
namespace {

using Ids = std::vector<int32_t>;

Ids ids_of(const Tokenizer& tokenizer, const std::string& text) {
  Ids ids;
  tokenizer.encoder()->encode(text, ids);
  return ids;
}

EncodingRules rules(const Tokenizer& tokenizer, bool bos = false, int64_t max_length = 64) {
  return {.bos = bos, .begin = tokenizer.bos(), .end = tokenizer.eos(), .max_length = max_length};
}

Ids joined(const ScoreRequest& r) {
  Ids all = r.context;
  all.insert(all.end(), r.continuation.begin(), r.continuation.end());
  return all;
}

class EncodeWith : public testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Tokenizer> tokenizer_ = test::load_tokenizer_fixture(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Tokenizers, EncodeWith, testing::Values("gpt2.json", "llama2.json", "llama3.json", "bpe.model"),
                         [](const auto& tokenizer) {
                           std::string name = tokenizer.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

TEST_P(EncodeWith, TheBorderIsWhereTheContextAloneEnds) {
  RequestEncoder encoder(*tokenizer_, rules(*tokenizer_));
  const std::string context = "Question: is the sky blue?\nAnswer:";
  const EncodedScore yes = encoder.score(context, " yes, it is");
  EXPECT_EQ(joined(yes.request), ids_of(*tokenizer_, context + " yes, it is"));
  EXPECT_EQ(yes.request.context.size(), ids_of(*tokenizer_, context).size());
  EXPECT_EQ(yes.cut, 0);
}

TEST_P(EncodeWith, SpaceAtTheEndOfAContextGoesToTheContinuation) {
  RequestEncoder encoder(*tokenizer_, rules(*tokenizer_));
  for (const std::string space : {" ", "\n", " \t\n ", "\u00a0"}) {
    const EncodedScore moved = encoder.score("The sky is" + space, "blue"), given = encoder.score("The sky is", space + "blue");
    EXPECT_EQ(moved.request.context, given.request.context);
    EXPECT_EQ(moved.request.continuation, given.request.continuation);
    EXPECT_EQ(moved.request.context, ids_of(*tokenizer_, "The sky is"));
  }
}

TEST_P(EncodeWith, ManyTextsThatBeginAlikeHaveTheIdsOfEach) {
  PrefixEncoder encoder(*tokenizer_);
  const std::unique_ptr<Encoder> plain = tokenizer_->encoder();
  Ids expected;
  RandomStream random({.seed = 7, .stream = hash_name("prefixes"), .purpose = Noise::data});
  const std::vector<std::string> pieces = {"The cat", " sat on", " 1234567", "\n\nQ: ", "  ",  "'s",   "é",      "日本", "!?",  " the mat.",
                                           "\n",      "\t",      " A",       "aaaa",    "<s>", "\xff", " don't", "3.14", "_x_", "\u00a0"};
  std::string text;
  for (int i = 0; i < 600; ++i) {
    // Cut back to somewhere, then go on: what stays was encoded before.
    std::string next = text.substr(0, random.below(text.size() + 1));
    for (uint64_t n = random.below(40); n > 0; --n) next += pieces[random.below(pieces.size())];
    if (next.size() > 4000) next.resize(100);
    text = next;
    expected.clear();
    plain->encode(text, expected);
    ASSERT_EQ(encoder.encode(text), expected) << text;
  }
}

TEST(Encode, AnEmptyContextIsThePrefixToken) {
  const auto tokenizer = test::load_tokenizer_fixture("llama2.json");
  for (const bool bos : {false, true}) {
    RequestEncoder encoder(*tokenizer, rules(*tokenizer, bos));
    const ScoreRequest r = encoder.score("", "He is old").request;
    EXPECT_EQ(r.context, Ids{*tokenizer->bos()});
    EXPECT_EQ(r.continuation, ids_of(*tokenizer, "He is old")) << "without special tokens";
  }
  EncodingRules no_bos = rules(*tokenizer);
  no_bos.begin = {};
  EXPECT_EQ(RequestEncoder(*tokenizer, no_bos).score("", "He").request.context, Ids{*tokenizer->eos()}) << "EOS where there is no BOS";
  no_bos.end = {};
  EXPECT_NE(message_of([&] { RequestEncoder(*tokenizer, no_bos).score("", "He"); }).find("neither"), std::string::npos);
}

TEST(Encode, BosIsASwitchAndNeverDoubled) {
  const auto tokenizer = test::load_tokenizer_fixture("llama2.json");
  const int32_t bos = *tokenizer->bos();
  RequestEncoder off(*tokenizer, rules(*tokenizer)), on(*tokenizer, rules(*tokenizer, true));
  Ids with = {bos};
  const Ids without = off.score("The sky", " is").request.context;
  with.insert(with.end(), without.begin(), without.end());
  EXPECT_EQ(on.score("The sky", " is").request.context, with);
  EXPECT_EQ(on.score("<s>The sky", " is").request.context.front(), bos);
  EXPECT_NE(on.score("<s>The sky", " is").request.context.at(1), bos);
  EXPECT_EQ(on.prompt({.kind = AskKind::generate, .context = ""}).request.prompt, Ids{bos});
  EncodingRules none = rules(*tokenizer, true);
  none.begin = {};
  EXPECT_THROW(RequestEncoder(*tokenizer, none), UsageError);
}

TEST(Encode, TooLongIsCutOnTheLeftAndTheLastTokenIsOnlyATarget) {
  const auto tokenizer = test::load_tokenizer_fixture("gpt2.json");
  const std::string context = "one two three four five six seven eight nine ten", continuation = " eleven";
  const Ids whole = ids_of(*tokenizer, context + continuation);
  const auto length = static_cast<int64_t>(whole.size()) - 4;
  RequestEncoder encoder(*tokenizer, rules(*tokenizer, false, length));
  const EncodedScore cut = encoder.score(context, continuation);
  EXPECT_EQ(cut.cut, 3);
  EXPECT_EQ(joined(cut.request), Ids(whole.begin() + 3, whole.end()));
  EXPECT_EQ(static_cast<int64_t>(joined(cut.request).size()), length + 1);
  RequestEncoder shorter(*tokenizer, rules(*tokenizer, false, 3));
  const EncodedScore windows = shorter.score("a", " " + context);
  Ids predicted = windows.request.continuation;
  for (const ScoreRequest& w : windows.more) predicted.insert(predicted.end(), w.continuation.begin(), w.continuation.end());
  const Ids all = ids_of(*tokenizer, "a " + context);
  EXPECT_EQ(predicted, Ids(all.begin() + 1, all.end())) << "a continuation that is longer than the model, each token once";
  EXPECT_EQ(windows.request.context, Ids{all.front()});
  EXPECT_EQ(windows.more.back().context.size() + windows.more.back().continuation.size(), 4u);
  EXPECT_NE(message_of([&] { encoder.score("a", ""); }).find("no text"), std::string::npos);
}

TEST(Encode, APromptLeavesRoomForNewTokens) {
  const auto tokenizer = test::load_tokenizer_fixture("gpt2.json");
  const std::string context = "one two three four five six seven eight nine ten";
  const Ids whole = ids_of(*tokenizer, context);
  RequestEncoder encoder(*tokenizer, rules(*tokenizer, false, 16));
  const EncodedPrompt cut = encoder.prompt({.kind = AskKind::generate, .context = context, .max_tokens = 12});
  EXPECT_EQ(cut.request.prompt, Ids(whole.end() - 4, whole.end()));
  EXPECT_EQ(cut.request.max_new, 12);
  EXPECT_EQ(cut.request.end, tokenizer->eos().value_or(-1));
  EXPECT_EQ(encoder.prompt({.kind = AskKind::generate, .context = context, .max_tokens = 1024}).request.max_new, 8) << "half of the model";
}

// The example in the harness's own description: ten tokens, a model of four.
TEST(Encode, RollingWindowsPredictEachTokenOnce) {
  const auto tokenizer = test::load_tokenizer_fixture("gpt2.json");
  EncodingRules r = rules(*tokenizer, false, 4);
  r.begin = 77;
  RequestEncoder encoder(*tokenizer, r);
  const std::string text = "a a a a a a a a a a";
  const Ids ids = ids_of(*tokenizer, text);
  ASSERT_EQ(ids.size(), 10u);
  const std::vector<ScoreRequest> windows = encoder.rolling(text);
  ASSERT_EQ(windows.size(), 3u);
  const auto part = [&](int from, int to) { return Ids(ids.begin() + from, ids.begin() + to); };
  EXPECT_EQ(windows[0].context, Ids{77});
  EXPECT_EQ(windows[0].continuation, part(0, 4));
  EXPECT_EQ(windows[1].context, part(3, 4));
  EXPECT_EQ(windows[1].continuation, part(4, 8));
  EXPECT_EQ(windows[2].context, part(5, 8)) << "filled up on its left";
  EXPECT_EQ(windows[2].continuation, part(8, 10));
}

TEST(Encode, PublishedTokenizersOfTwoFamilies) {
  const std::string folder = test::published_tokenizers();
  if (folder.empty()) GTEST_SKIP() << "no ../shared/data/tokenizers";
  const auto gpt2 = load_tokenizer(folder + "/gpt2/tokenizer.json"), llama2 = load_tokenizer(folder + "/llama2/tokenizer.json");
  const ScoreRequest g = RequestEncoder(*gpt2, rules(*gpt2)).score("Hello", " world").request;
  EXPECT_EQ(g.context, Ids{15496});
  EXPECT_EQ(g.continuation, Ids{995});
  const ScoreRequest l = RequestEncoder(*llama2, rules(*llama2, true)).score("Hello ", "world").request;
  EXPECT_EQ(l.context, (Ids{1, 15043}));
  EXPECT_EQ(l.continuation, Ids{3186});
}

}  // namespace
}  // namespace hlat
