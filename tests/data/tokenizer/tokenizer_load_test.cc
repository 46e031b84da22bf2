// What the readers of tokenizer files refuse, and what a tokenizer tells about itself.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "data/tokenizer/formats.h"
#include "data/tokenizer/tokenizer.h"
#include "support/message_of.h"
#include "support/temp_dir.h"
#include "support/tokenizer_golden.h"

namespace hlat::test {
namespace {

using nlohmann::json;
using tokenizer::read_tokenizer;

std::string says(const json& file) {
  return message_of([&] { read_tokenizer(file.dump()); });
}

TEST(TokenizerLoad, WhatIsNotSupportedIsNamed) {
  const json base = json::parse(slurp(tokenizer_fixture("gpt2.json")));
  const auto with = [&](const char* path, const json& value) {
    json j = base;
    j[json::json_pointer(path)] = value;
    return says(j);
  };
  EXPECT_EQ(with("/model/type", "WordPiece"), "model: type 'WordPiece' is not supported; BPE and Unigram are");
  EXPECT_EQ(with("/model/dropout", 0.1), "model: dropout is not supported: ids would be random");
  EXPECT_EQ(with("/model/end_of_word_suffix", "</w>"), "model: end_of_word_suffix '</w>' is not supported");
  EXPECT_EQ(with("/model/new_option", true), "model: 'new_option' is not supported");
  EXPECT_EQ(
      with("/normalizer", {{"type", "BertNormalizer"}}),
      "tokenizer.normalizer: normalizer 'BertNormalizer' is not supported; NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, Nmt, "
      "Prepend, Replace and Sequence are");
  EXPECT_EQ(with("/normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", "AAAA"}}),
            "tokenizer.normalizer: normalizer 'Precompiled' is not supported; give the SentencePiece file that this one was made from "
            "(spiece.model, *.spm)");
  EXPECT_EQ(with("/pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {{{"type", "Whitespace"}}}}}),
            "tokenizer.pre_tokenizer.pretokenizers[0]: pre-tokenizer 'Whitespace' is not supported; ByteLevel, Split, Digits, Punctuation, "
            "WhitespaceSplit, Metaspace and Sequence are");
  EXPECT_EQ(
      with("/decoder", {{"type", "WordPiece"}}),
      "tokenizer.decoder: decoder 'WordPiece' is not supported; ByteLevel, Replace, ByteFallback, Fuse, Strip, Metaspace and Sequence are");
  EXPECT_EQ(with("/post_processor", {{"type", "Odd"}}), "tokenizer.post_processor: post-processor 'Odd' is not supported");
  const json split = {{"type", "Split"}, {"pattern", {{"Regex", "[a[^b]]"}}}, {"behavior", "Isolated"}, {"invert", false}};
  EXPECT_EQ(with("/pre_tokenizer", split), "pattern '[a[^b]]': a class within a class of this kind is not supported");
}

TEST(TokenizerLoad, BrokenFilesSayWhatIsWrong) {
  const json base = json::parse(slurp(tokenizer_fixture("gpt2.json")));
  json j = base;
  j["model"]["merges"].push_back({"a", "nothing"});
  EXPECT_NE(says(j).find("'nothing' is not in the vocabulary"), std::string::npos) << says(j);
  j = base;
  j["model"]["merges"].push_back("one");
  EXPECT_NE(says(j).find("'one' is not two tokens"), std::string::npos) << says(j);
  j = base;
  j["model"]["vocab"]["new"] = 3;
  EXPECT_NE(says(j).find("id 3 has two tokens"), std::string::npos) << says(j);
  j["model"]["vocab"]["new"] = -1;
  EXPECT_NE(says(j).find("'new' has the id -1"), std::string::npos) << says(j);
  j["model"]["vocab"]["new"] = "x";
  EXPECT_EQ(says(j), "model.vocab['new']: must be an integer");
  j = base;
  j["added_tokens"].push_back({{"id", 5}, {"content", "<taken>"}});
  EXPECT_NE(says(j).find("id 5 has two tokens"), std::string::npos) << says(j);
  j = base;
  j.erase("model");
  EXPECT_EQ(says(j), "tokenizer: 'model' is missing");

  const auto text = [](const std::string& content) { return message_of([&] { read_tokenizer(content); }); };
  EXPECT_EQ(text("IQ== 0\nIg== x\n"), "line 2 is not a token in base64 and its rank");
  EXPECT_EQ(text("IQ== 0\nIg== 1\n"), "the byte 0x00 is no token");
  const std::string ranks = slurp(tokenizer_fixture("llama3.model")) + "AAAA 9000\n";
  EXPECT_EQ(message_of([&] { tokenizer::read_tiktoken_as(ranks, tokenizer::tiktoken_families().front()); }),
            "ranks are not 0 to 400: one is missing");
  const std::string spm = slurp(tokenizer_fixture("bpe.model"));
  EXPECT_EQ(text(spm.substr(0, spm.size() / 2)), "neither JSON, nor tiktoken's ranks, nor a SentencePiece model");
}

TEST(TokenizerLoad, TellsAboutItself) {
  const auto gpt2 = load_tokenizer(tokenizer_fixture("gpt2.json"));
  EXPECT_EQ(gpt2->describe(), "byte-level BPE, 420 tokens");
  EXPECT_EQ(gpt2->vocab_size(), 420);
  EXPECT_EQ(gpt2->eos(), 0);
  EXPECT_EQ(gpt2->bos(), std::nullopt);
  EXPECT_EQ(gpt2->id_of("<|endoftext|>"), 0);
  EXPECT_EQ(gpt2->id_of("no such token"), std::nullopt);
  const std::vector<int32_t> odd = {0, 1000, -5};
  EXPECT_EQ(gpt2->decode(odd), "<|endoftext|><1000><-5>");

  const auto llama3 = load_tokenizer_fixture("llama3.model");
  EXPECT_EQ(llama3->vocab_size(), 400 + 256);
  EXPECT_EQ(llama3->bos(), 400);
  EXPECT_EQ(llama3->eos(), 401);
  EXPECT_EQ(llama3->id_of("<|eot_id|>"), 409);
  EXPECT_EQ(llama3->id_of("<|reserved_special_token_2|>"), 412);
  EXPECT_EQ(llama3->id_of("<|reserved_special_token_245|>"), 655);

  const auto spm = load_tokenizer(tokenizer_fixture("bpe.model"));
  EXPECT_EQ(spm->describe(), "SentencePiece BPE, 560 tokens");
  EXPECT_EQ(spm->eos(), 2);
  EXPECT_EQ(spm->bos(), 1);
  EXPECT_TRUE(spm->is_fallback(*spm->id_of("<0x41>")));
  EXPECT_TRUE(spm->is_fallback(0));
  EXPECT_FALSE(spm->is_fallback(*spm->id_of("\u2581the")));
  EXPECT_EQ(load_tokenizer(tokenizer_fixture("bpe_user.model"))->describe(), "SentencePiece model by its library, 300 tokens");
  EXPECT_EQ(load_tokenizer(tokenizer_fixture("unigram.model"))->describe(), "SentencePiece unigram by its library, 240 tokens");

  EXPECT_EQ(gpt2->fingerprint(), load_tokenizer(tokenizer_fixture("gpt2.json"))->fingerprint());
  EXPECT_NE(gpt2->fingerprint(), llama3->fingerprint());
}

// What stands next to a tokenizer.json is told by name, with the file to give.
TEST(TokenizerLoad, OtherFilesOfAModelAreNamed) {
  const auto text = [](const std::string& content) { return message_of([&] { read_tokenizer(content); }); };
  const std::string give = "; give the tokenizer.json of the same model (or its SentencePiece .model)";
  EXPECT_EQ(text(R"({"the": 0, "boat": 1, "model": 2})"),
            "this is a vocab.json (or added_tokens.json): tokens and ids, without the merges and the rules that cut text" + give);
  EXPECT_EQ(text("#version: 0.2\nt h\n"), "this is a merges.txt: merges without the vocabulary and the rules that cut text" + give);
  EXPECT_EQ(text(R"({"tokenizer_class": "GPT2Tokenizer", "bos_token": "<s>"})"),
            "this is a tokenizer_config.json: settings of a tokenizer, not its tokens" + give);
  EXPECT_EQ(text(R"({"bos_token": "<s>", "eos_token": {"content": "</s>"}})"),
            "this is a special_tokens_map.json: names of special tokens, not the tokenizer" + give);
  EXPECT_EQ(text(R"({"architectures": ["LlamaForCausalLM"]})"), "this is a config.json: the shape of a model, not its tokenizer" + give);
  EXPECT_NE(text("[PAD]\n[UNK]\n").find("a vocab.txt of WordPiece"), std::string::npos);
}

TEST(TokenizerLoad, TruncationAndPaddingAreToldAndDoNotMatter) {
  json j = json::parse(slurp(tokenizer_fixture("gpt2.json")));
  const auto plain = read_tokenizer(j.dump());
  EXPECT_TRUE(plain->warnings().empty());
  j["truncation"] = {{"direction", "Right"}, {"max_length", 2}, {"strategy", "LongestFirst"}, {"stride", 0}};
  j["padding"] = {{"strategy", {{"Fixed", 8}}}, {"direction", "Right"}, {"pad_id", 0}, {"pad_type_id", 0}, {"pad_token", "<pad>"}};
  const auto cut = read_tokenizer(j.dump());
  EXPECT_EQ(cut->warnings(), (std::vector<std::string>{"'truncation' of the tokenizer file does not concern training: documents stay whole",
                                                       "'padding' of the tokenizer file does not concern training: documents stay whole"}));
  std::vector<int32_t> a, b;
  plain->encoder()->encode("the boats didn't stop", a);
  cut->encoder()->encode("the boats didn't stop", b);
  EXPECT_EQ(a, b);
  EXPECT_GT(a.size(), 2u);
}

TEST(TokenizerLoad, AddedTokensAfterAGapKeepTheirIds) {
  json j = json::parse(slurp(tokenizer_fixture("gpt2.json")));
  j["added_tokens"].push_back({{"id", 500}, {"content", "<far>"}, {"special", true}});
  const auto tokenizer = read_tokenizer(j.dump());
  EXPECT_EQ(tokenizer->vocab_size(), 501);
  std::vector<int32_t> ids;
  tokenizer->encoder()->encode("<far>", ids);
  EXPECT_EQ(ids, std::vector<int32_t>{500});
  ASSERT_EQ(tokenizer->warnings().size(), 1u);
  EXPECT_NE(tokenizer->warnings()[0].find("500 is kept, where the tokenizers library would count on from 420"), std::string::npos);
}

TEST(TokenizerLoad, BeginAndEndByTheirNames) {
  json j = json::parse(slurp(tokenizer_fixture("gpt2.json")));
  j["added_tokens"] = {{{"id", 420}, {"content", "<start>"}, {"special", true}}, {{"id", 421}, {"content", "<stop>"}, {"special", true}}};
  EXPECT_EQ(read_tokenizer(j.dump())->bos(), std::nullopt);
  const TempDir dir;
  std::ofstream(dir.path() + "/tokenizer.json") << j.dump();
  EXPECT_EQ(load_tokenizer(dir.path() + "/tokenizer.json")->eos(), std::nullopt);
  std::ofstream(dir.path() + "/tokenizer_config.json") << R"({"bos_token": "<start>", "eos_token": {"content": "<stop>"}})";
  const auto named = load_tokenizer(dir.path() + "/tokenizer.json");
  EXPECT_EQ(named->bos(), 420);
  EXPECT_EQ(named->eos(), 421);

  const json sequence = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  const json start = {{"SpecialToken", {{"id", "<start>"}, {"type_id", 0}}}};
  j["post_processor"] = {{"type", "TemplateProcessing"}, {"single", {start, sequence}}};
  EXPECT_EQ(read_tokenizer(j.dump())->bos(), 420);
}

TEST(TokenizerLoad, TekkenHasItsSpecialTokensFirst) {
  const auto tokenizer = load_tokenizer(tokenizer_fixture("tekken.json"));
  EXPECT_EQ(tokenizer->describe(), "byte-level BPE of Tekken's ranks, 412 tokens");
  EXPECT_EQ(tokenizer->bos(), 1);
  EXPECT_EQ(tokenizer->eos(), 2);
  EXPECT_EQ(tokenizer->id_of("[INST]"), 3);
  EXPECT_EQ(tokenizer->id_of("<SPECIAL_19>"), 19);
  EXPECT_EQ(tokenizer->id_of("A"), 20 + 'A');
}

// Time n log n in the length of a word: a quadratic merge would take hours here.
TEST(TokenizerLoad, WordsOfAMillionLetters) {
  for (const char* file : {"gpt2.json", "llama2.json", "bpe.model", "llama3.model"}) {
    const auto tokenizer = load_tokenizer_fixture(file);
    for (const char* unit : {"a", " ", "\n", "the", "\u8239"}) {
      std::string text;
      while (text.size() < 1000000) text += unit;
      std::vector<int32_t> ids;
      tokenizer->encoder()->encode(text, ids);
      EXPECT_EQ(tokenizer->decode(ids), text) << file << ": " << unit;
    }
  }
}

}  // namespace
}  // namespace hlat::test
