// Six bits a character.
#include "data/tokenizer/base64.h"

#include <cstdint>

namespace hlat::tokenizer {
namespace {

int base64_value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

}  // namespace

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

}  // namespace hlat::tokenizer
