// Spellings of tokens.
#include "data/tokenizer/vocab.h"

#include <array>

#include "base/error.h"
#include "data/tokenizer/unicode.h"

namespace hlat::tokenizer {
namespace {

// Bytes that are printable in Latin-1 stand for themselves; the others, in order, are U+0100 and up.
bool prints_itself(int byte) { return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE; }

constexpr size_t kPrintable = 0x100 + 68;

std::array<int, kPrintable> make_byte_of_printable() {
  std::array<int, kPrintable> table{};
  table.fill(-1);
  size_t moved = 0x100;
  for (int b = 0; b < 256; ++b) table[prints_itself(b) ? static_cast<size_t>(b) : moved++] = b;
  return table;
}

}  // namespace

void Vocab::add(std::string_view token, int64_t id) {
  if (id < 0 || id > kMaxTokenId) fail("token '{}' has the id {}, which is not within 0 to {}", token, id, kMaxTokenId);
  const auto at = static_cast<size_t>(id);
  if (at >= tokens_.size()) {
    tokens_.resize(at + 1);
    there_.resize(at + 1, false);
  }
  const auto [it, inserted] = ids_.emplace(token, static_cast<int32_t>(id));
  if (!inserted && it->second != id) fail("token '{}' has two ids, {} and {}", token, it->second, id);
  if (there_[at] && tokens_[at] != token) fail("id {} has two tokens, '{}' and '{}'", id, tokens_[at], token);
  tokens_[at] = token;
  there_[at] = true;
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  size_t done = 0;
  for (size_t at = 0; (at = text.find(from, done)) != std::string_view::npos; done = at + from.size()) {
    out.append(text, done, at - done);
    out += to;
  }
  return out.append(text, done);
}

std::optional<uint8_t> byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  unsigned value = 0;
  for (const char c : token.substr(3, 2)) {
    if (c >= '0' && c <= '9')
      value = value * 16 + static_cast<unsigned>(c - '0');
    else if (c >= 'A' && c <= 'F')
      value = value * 16 + static_cast<unsigned>(c - 'A' + 10);
    else
      return std::nullopt;
  }
  return static_cast<uint8_t>(value);
}

std::string token_of_byte(uint8_t byte) { return fmt::format("<0x{:02X}>", byte); }

std::optional<std::string> bytes_of_printable(std::string_view token) {
  static const std::array<int, kPrintable> table = make_byte_of_printable();
  std::string out;
  for (const char *p = token.data(), *end = p + token.size(); p < end;) {
    const unicode::Char c = unicode::decode_any(p, end);
    if (c.code >= kPrintable || table[c.code] < 0) return std::nullopt;
    out.push_back(static_cast<char>(table[c.code]));
    p += c.size;
  }
  return out;
}

std::string printable_of_byte(uint8_t byte) {
  uint32_t code = prints_itself(byte) ? byte : 0x100;
  for (int b = 0; code >= 0x100 && b < byte; ++b) code += prints_itself(b) ? 0 : 1;
  std::string out;
  unicode::append(out, code);
  return out;
}

}  // namespace hlat::tokenizer
