// tiktoken's rank files as Llama 3 ships them: a line per token, its bytes in base64 and its rank, which is its id. The pattern
// and the 256 special tokens after the ranks are those of Meta's tokenizer; text that spells a special token stays text.
#include <array>

#include "base/error.h"
#include "base/rng.h"
#include "data/tokenizer/bpe_tokenizer.h"
#include "data/tokenizer/formats.h"

namespace hlat::tokenizer {
namespace {

constexpr size_t kSpecialTokens = 256;
constexpr std::array<const char*, 12> kNamed = {
    "<|begin_of_text|>",
    "<|end_of_text|>",
    "<|reserved_special_token_0|>",
    "<|reserved_special_token_1|>",
    "<|finetune_right_pad_id|>",
    "<|step_id|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eom_id|>",
    "<|eot_id|>",
    "<|python_tag|>",
    "<|image|>",
};

int base64_value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

bool from_base64(std::string_view text, std::string& out) {
  out.clear();
  if (text.empty() || text.size() % 4 != 0) return false;
  while (text.ends_with('=') && text.size() % 4 != 2) text.remove_suffix(1);
  uint32_t bits = 0;
  int have = 0;
  for (const char c : text) {
    const int v = base64_value(c);
    if (v < 0) return false;
    bits = (bits << 6 | static_cast<uint32_t>(v)) & 0xFFFFFFu;
    have += 6;
    if (have < 8) continue;
    have -= 8;
    out.push_back(static_cast<char>(bits >> have & 0xFFu));
  }
  return true;
}

bool read_line(std::string_view line, std::string& bytes, uint32_t& rank) {
  const size_t space = line.find(' ');
  if (space == std::string_view::npos || !from_base64(line.substr(0, space), bytes)) return false;
  const std::string_view digits = line.substr(space + 1);
  if (digits.empty() || digits.size() > 8) return false;
  rank = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return false;
    rank = rank * 10 + static_cast<uint32_t>(c - '0');
  }
  return true;
}

std::string special_name(size_t i) {
  return i < kNamed.size() ? kNamed[i] : fmt::format("<|reserved_special_token_{}|>", 2 + i - kNamed.size());
}

std::vector<RankedToken> read_ranks(std::string_view content) {
  std::vector<RankedToken> tokens;
  for (size_t line = 1; !content.empty(); ++line) {
    const size_t end = std::min(content.find('\n'), content.size());
    std::string_view text = content.substr(0, end);
    content.remove_prefix(std::min(end + 1, content.size()));
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (text.empty()) continue;
    RankedToken t{};
    if (!read_line(text, t.bytes, t.rank)) fail("line {} is not a token in base64 and its rank", line);
    if (t.rank > static_cast<uint32_t>(kMaxTokenId)) fail("line {}: rank {} is above {}", line, t.rank, kMaxTokenId);
    t.id = static_cast<int32_t>(t.rank);
    tokens.push_back(std::move(t));
  }
  return tokens;
}

}  // namespace

bool looks_like_tiktoken(std::string_view content) {
  std::string_view line = content.substr(0, std::min<size_t>(content.find('\n'), 4096));
  if (line.ends_with('\r')) line.remove_suffix(1);
  std::string bytes;
  uint32_t rank = 0;
  return read_line(line, bytes, rank);
}

std::unique_ptr<Tokenizer> read_tiktoken(std::string_view content) {
  const std::vector<RankedToken> tokens = read_ranks(content);
  BpeParts parts;
  IdMap ids;
  for (const RankedToken& t : tokens) {
    if (!ids.emplace(t.bytes, t.id).second) fail("rank {}: a token that is there twice", t.rank);
    parts.vocab.add(t.bytes, t.id);
  }
  for (int b = 0; b < 256; ++b)
    if (!ids.contains(std::string(1, static_cast<char>(b)))) fail("the byte 0x{:02X} is no token", b);
  if (static_cast<size_t>(parts.vocab.size()) != tokens.size()) fail("ranks are not 0 to {}: one is missing", tokens.size() - 1);
  const auto base = static_cast<int64_t>(tokens.size());
  for (size_t i = 0; i < kSpecialTokens; ++i) parts.vocab.add(special_name(i), base + static_cast<int64_t>(i));

  const auto size = static_cast<size_t>(parts.vocab.size());
  parts.fallback.resize(size, false);
  for (const auto& [token, id] : ids)
    if (token.size() == 1 && static_cast<uint8_t>(token[0]) >= 0x80) parts.fallback[static_cast<size_t>(id)] = true;
  for (int32_t id = 0; id < parts.vocab.size(); ++id) parts.decoder.bytes.push_back(parts.vocab.token(id));
  parts.decoder.known.resize(size, true);
  PairTable pairs = pairs_of_ranked(tokens, ids, true);
  parts.model =
      std::make_unique<BpeModel>(BpeOptions{.bytes = true, .whole_first = true}, ids, std::move(pairs), std::array<int32_t, 256>{});
  parts.steps = {{.kind = SplitStep::llama3}};
  parts.bos = static_cast<int32_t>(base);
  parts.eos = static_cast<int32_t>(base + 1);
  parts.kind = "byte-level BPE of ranks";
  parts.fingerprint = hash_name(content);
  return make_bpe_tokenizer(std::move(parts));
}

}  // namespace hlat::tokenizer
