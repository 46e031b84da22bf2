// Mistral's tekken.json: ranks in JSON with their pattern. Special tokens come first, then the tokens in the order of their ranks, as
// many as the vocabulary has room for; text that spells a special token stays text.
#include <algorithm>

#include "base/rng.h"
#include "data/tokenizer/base64.h"
#include "data/tokenizer/formats.h"
#include "data/tokenizer/json_node.h"
#include "data/tokenizer/ranked.h"

namespace hlat::tokenizer {
namespace {

// Files of the first version do not list them.
constexpr std::array<const char*, 20> kSpecial = {"<unk>",
                                                  "<s>",
                                                  "</s>",
                                                  "[INST]",
                                                  "[/INST]",
                                                  "[AVAILABLE_TOOLS]",
                                                  "[/AVAILABLE_TOOLS]",
                                                  "[TOOL_RESULTS]",
                                                  "[/TOOL_RESULTS]",
                                                  "[TOOL_CALLS]",
                                                  "[IMG]",
                                                  "<pad>",
                                                  "[IMG_BREAK]",
                                                  "[IMG_END]",
                                                  "[PREFIX]",
                                                  "[MIDDLE]",
                                                  "[SUFFIX]",
                                                  "[SYSTEM_PROMPT]",
                                                  "[/SYSTEM_PROMPT]",
                                                  "[TOOL_CONTENT]"};

std::vector<std::pair<std::string, int64_t>> read_special(const JsonNode& root, int64_t count) {
  std::vector<std::string> names(static_cast<size_t>(count));
  for (size_t i = 0; i < names.size(); ++i) names[i] = fmt::format("<SPECIAL_{}>", i);
  const auto name = [&](int64_t rank, const std::string& text) {
    if (rank < 0 || rank >= count) fail("special_tokens: '{}' has the rank {}, but there are {}", text, rank, count);
    names[static_cast<size_t>(rank)] = text;
  };
  if (root.has("special_tokens"))
    root.at("special_tokens").each([&](const JsonNode& n) { name(n.at("rank").integer(), n.text("token_str")); });
  else
    for (size_t i = 0; i < std::min(kSpecial.size(), names.size()); ++i) names[i] = kSpecial[i];
  std::vector<std::pair<std::string, int64_t>> out;
  for (size_t i = 0; i < names.size(); ++i) out.emplace_back(names[i], static_cast<int64_t>(i));
  return out;
}

int64_t count_of(const JsonNode& config, const char* key) {
  const int64_t n = config.at(key).integer();
  if (n < 0 || n > kMaxTokenId) config.at(key).refuse(fmt::format("must be within 0 to {}", kMaxTokenId));
  return n;
}

}  // namespace

std::unique_ptr<Tokenizer> read_tekken(const nlohmann::json& json, std::string_view content) {
  const JsonNode root(json, "tekken");
  const JsonNode config = root.at("config");
  const int64_t special = count_of(config, "default_num_special_tokens");
  const int64_t room = count_of(config, "default_vocab_size") - special;
  RankedFile file;
  file.special = read_special(root, special);
  file.bos = "<s>";
  file.eos = "</s>";
  root.at("vocab").each([&](const JsonNode& node) {
    RankedToken token{};
    const int64_t rank = node.at("rank").integer();
    if (rank != static_cast<int64_t>(file.tokens.size()) && rank < room) node.refuse("ranks must count from 0");
    if (rank >= room) return;
    if (!from_base64(node.text("token_bytes"), token.bytes)) node.refuse("'token_bytes' is not base64");
    token.rank = static_cast<uint32_t>(rank);
    token.id = static_cast<int32_t>(rank + special);
    file.tokens.push_back(std::move(token));
  });
  check_bytes(file.tokens);
  file.step = step_of_pattern(config.text("pattern"));
  file.kind = "byte-level BPE of Tekken's ranks";
  file.fingerprint = hash_name(content);
  return make_ranked_tokenizer(std::move(file));
}

}  // namespace hlat::tokenizer
