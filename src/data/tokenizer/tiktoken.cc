// tiktoken's rank files: a line per token, its bytes in base64 and its rank, which is its id. The file says nothing else, so the
// family that it belongs to (tiktoken_families.h) does; text that spells a special token stays text.
#include <algorithm>

#include "base/error.h"
#include "base/rng.h"
#include "data/tokenizer/base64.h"
#include "data/tokenizer/formats.h"
#include "data/tokenizer/ranked.h"

namespace hlat::tokenizer {
namespace {

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

// Every rank is there, or a special token has it as its id.
void check_ranks(const RankedFile& file) {
  int64_t end = 0;
  for (const RankedToken& t : file.tokens) end = std::max<int64_t>(end, t.id + 1);
  const auto below = std::count_if(file.special.begin(), file.special.end(), [&](const auto& s) { return s.second < end; });
  if (end != static_cast<int64_t>(file.tokens.size()) + below) fail("ranks are not 0 to {}: one is missing", file.tokens.size() - 1);
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
  check_bytes(tokens);
  return read_tiktoken_as(content, family_of(tokens));
}

std::unique_ptr<Tokenizer> read_tiktoken_as(std::string_view content, const TiktokenFamily& family) {
  RankedFile file;
  file.tokens = read_ranks(content);
  check_bytes(file.tokens);
  const int64_t shift = static_cast<int64_t>(file.tokens.size()) - family.ranks;
  for (const auto& [name, id] : family.special_tokens()) file.special.emplace_back(name, id + shift);
  check_ranks(file);
  file.bos = family.bos;
  file.eos = family.eos;
  file.kind = fmt::format("byte-level BPE of {}'s ranks", family.name);
  if (family.nfc) file.normalizer.steps.push_back({.kind = NormalizerStep::form, .from = "", .to = ""});
  file.step = family.ends_with_space ? SplitStep{.kind = SplitStep::cl100k} : step_of_pattern(std::string(family.pattern));
  file.fingerprint = hash_name(content);
  return make_ranked_tokenizer(std::move(file));
}

}  // namespace hlat::tokenizer
