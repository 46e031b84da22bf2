// Small questions about UTF-8.
#pragma once

#include <cstddef>
#include <string_view>

namespace hlat::reader {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// How many bytes at the end belong to a character that is not finished.
inline size_t unfinished_bytes(std::string_view text) {
  for (size_t n = 1; n <= 3 && n <= text.size(); ++n) {
    const auto c = static_cast<unsigned char>(text[text.size() - n]);
    if ((c & 0xc0u) == 0x80u) continue;
    const size_t needs = c < 0xc0u ? 1 : c < 0xe0u ? 2 : c < 0xf0u ? 3 : 4;
    return n < needs ? n : 0;
  }
  return 0;
}

}  // namespace hlat::reader
