// Files of ranks are told by their number of ranks and some of their tokens; what is of no known family is refused.
#include "data/tokenizer/tiktoken_families.h"

#include <gtest/gtest.h>

#include <map>

#include "data/tokenizer/formats.h"
#include "support/message_of.h"

namespace hlat::test {
namespace {

using tokenizer::TiktokenFamily;

std::string base64(const std::string& bytes) {
  constexpr const char* kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k) bits = bits << 8 | (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0u);
    for (size_t k = 0; k < 4; ++k) out += i + k <= bytes.size() ? kDigits[bits >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

// As many ranks as asked for, of which only the named tokens are real.
std::string ranks(int64_t count, const std::vector<TiktokenFamily::Known>& known, int64_t hole = -1) {
  std::map<int64_t, std::string> named;
  for (const auto& k : known) named[k.rank] = k.bytes;
  std::string out;
  for (int64_t rank = 0, written = 0; written < count; ++rank) {
    if (rank == hole) continue;
    const auto code = static_cast<uint32_t>(rank);
    std::string bytes = rank < 256
                            ? std::string(1, static_cast<char>(rank))
                            : std::string{'\xFF', static_cast<char>(code >> 16), static_cast<char>(code >> 8), static_cast<char>(code)};
    if (named.contains(rank)) bytes = named[rank];
    out += base64(bytes) + " " + std::to_string(rank) + "\n";
    ++written;
  }
  return out;
}

struct Facts {
  const char* family;
  int64_t ranks;
  std::vector<TiktokenFamily::Known> known;
  int64_t vocab;
  int32_t eos;
  std::optional<int32_t> bos;
  int64_t hole = -1;
};

// Numbers as the families' own code has them.
TEST(TiktokenFamilies, AreToldByTheirRanks) {
  const std::vector<TiktokenFamily::Known> gpt2 = {{256, " t"}, {50255, " gazed"}};
  const std::vector<Facts> all = {
      {"r50k_base (GPT-2)", 50256, gpt2, 50257, 50256, {}},
      {"p50k_base", 50280, gpt2, 50281, 50256, {}, 50256},
      {"cl100k_base", 100256, {{256, "  "}, {72325, " Bosch"}}, 100277, 100257, {}},
      {"o200k_base", 199998, {{111062, " avoids"}, {111067, "ENDOR"}}, 200019, 199999, {}},
      {"Llama 3", 128000, {{256, "  "}, {127999, "\xE9\x94\xA6"}}, 128256, 128001, 128000},
      {"Llama 4", 200000, {}, 202048, 200001, 200000},
      {"Qwen", 151643, {{68032, " lions"}, {68893, "County"}}, 151851, 151643, {}},
      {"GLM-4", 151329, {}, 151343, 151329, {}},
      {"Kimi", 163584, {}, 163840, 163585, 163584},
  };
  ASSERT_EQ(all.size(), tokenizer::tiktoken_families().size());
  for (const Facts& f : all) {
    const auto t = tokenizer::read_tokenizer(ranks(f.ranks, f.known, f.hole));
    EXPECT_EQ(t->describe(), "byte-level BPE of " + std::string(f.family) + "'s ranks, " + std::to_string(f.vocab) + " tokens");
    EXPECT_EQ(t->vocab_size(), f.vocab) << f.family;
    EXPECT_EQ(t->eos(), f.eos) << f.family;
    EXPECT_EQ(t->bos(), f.bos) << f.family;
  }
}

TEST(TiktokenFamilies, Llama4NamesItsSpecialTokensAsMetaDoes) {
  const auto t = tokenizer::read_tokenizer(ranks(200000, {}));
  EXPECT_EQ(t->id_of("<|fim_suffix|>"), 200004);
  EXPECT_EQ(t->id_of("<|header_start|>"), 200005);
  EXPECT_EQ(t->id_of("<|eot|>"), 200008);
  EXPECT_EQ(t->id_of("<|finetune_right_pad|>"), 200018);
  EXPECT_EQ(t->id_of("<|image_start|>"), 200080);
  EXPECT_EQ(t->id_of("<|patch|>"), 200092);
  EXPECT_EQ(t->id_of("<|vision_reserved_special_token_1047|>"), 201133);
  EXPECT_EQ(t->id_of("<|reasoning_thinking_end|>"), 201143);
}

TEST(TiktokenFamilies, RanksOfNoKnownFamilyAreRefused) {
  const auto says = [](const std::string& content) { return message_of([&] { tokenizer::read_tokenizer(content); }); };
  const std::string odd = says(ranks(1000, {}));
  EXPECT_NE(odd.find("1000 ranks of no family that is known (r50k_base (GPT-2) 50256, p50k_base 50280"), std::string::npos) << odd;
  EXPECT_NE(odd.find("give the model's tokenizer.json"), std::string::npos) << odd;
  // As many as Llama 3 has, but somebody else's.
  EXPECT_NE(says(ranks(128000, {})).find("128000 ranks, as Llama 3 has, but not its tokens"), std::string::npos);
}

}  // namespace
}  // namespace hlat::test
