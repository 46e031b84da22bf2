// What the readers of tokenizer files refuse, and what a tokenizer tells about itself.
#include <gtest/gtest.h>

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
  EXPECT_EQ(with("/model/type", "Unigram"), "model: type 'Unigram' is not supported; BPE is");
  EXPECT_EQ(with("/model/dropout", 0.1), "model: dropout is not supported: ids would be random");
  EXPECT_EQ(with("/model/end_of_word_suffix", "</w>"), "model: end_of_word_suffix '</w>' is not supported");
  EXPECT_EQ(with("/model/new_option", true), "model: 'new_option' is not supported");
  EXPECT_EQ(with("/normalizer", {{"type", "NFKC"}}),
            "tokenizer.normalizer: normalizer 'NFKC' is not supported; NFC, Prepend, Replace and Sequence are");
  EXPECT_EQ(
      with("/pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {{{"type", "Whitespace"}}}}}),
      "tokenizer.pre_tokenizer.pretokenizers[0]: pre-tokenizer 'Whitespace' is not supported; ByteLevel, Split, Digits, Metaspace and "
      "Sequence are");
  EXPECT_EQ(
      with("/decoder", {{"type", "WordPiece"}}),
      "tokenizer.decoder: decoder 'WordPiece' is not supported; ByteLevel, Replace, ByteFallback, Fuse, Strip, Metaspace and Sequence are");
  EXPECT_EQ(with("/truncation", {{"max_length", 512}}), "tokenizer: 'truncation' is not supported: documents stay whole");
  EXPECT_EQ(with("/post_processor", {{"type", "Odd"}}), "tokenizer.post_processor: post-processor 'Odd' is not supported");
  const json split = {{"type", "Split"}, {"pattern", {{"Regex", "[a[b]]"}}}, {"behavior", "Isolated"}, {"invert", false}};
  EXPECT_EQ(with("/pre_tokenizer", split), "pattern '[a[b]]': a class within a class is not supported");
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
  j["added_tokens"].push_back({{"id", 9999}, {"content", "<far>"}});
  EXPECT_NE(says(j).find("'<far>' has the id 9999, but the tokens before it make that 420"), std::string::npos) << says(j);
  j = base;
  j.erase("model");
  EXPECT_EQ(says(j), "tokenizer: 'model' is missing");

  const auto text = [](const std::string& content) { return message_of([&] { read_tokenizer(content); }); };
  EXPECT_EQ(text("IQ== 0\nIg== x\n"), "line 2 is not a token in base64 and its rank");
  EXPECT_EQ(text("IQ== 0\nIg== 1\n"), "the byte 0x00 is no token");
  EXPECT_EQ(text(slurp(tokenizer_fixture("llama3.model")) + "AAAA 9000\n"), "ranks are not 0 to 400: one is missing");
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

  const auto llama3 = load_tokenizer(tokenizer_fixture("llama3.model"));
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

// Time n log n in the length of a word: a quadratic merge would take hours here.
TEST(TokenizerLoad, WordsOfAMillionLetters) {
  for (const char* file : {"gpt2.json", "llama2.json", "bpe.model", "llama3.model"}) {
    const auto tokenizer = load_tokenizer(tokenizer_fixture(file));
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
