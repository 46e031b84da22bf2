// Which bytes stand side by side within a token. No merge reaches across two that never do, so text that nothing else cuts into
// words can be cut there without changing an id: at spaces, line breaks, between digits where numbers have no tokens.
#pragma once

#include <bitset>
#include <cstdint>

#include "data/tokenizer/vocab.h"

namespace hlat::tokenizer {

class Joints {
 public:
  // `ids`: the tokens that text can become, where a space stands for U+2581 and only leads. `bytes_for_unknown`: a character
  // without a token becomes bytes; else neighbours without tokens become one unknown and must stay together.
  Joints(const IdMap& ids, bool bytes_for_unknown);

  // The end of the part that starts at p.
  const char* next(const char* p, const char* end) const {
    for (++p; p < end && joined_[at(p[-1], p[0])]; ++p) {
    }
    return p;
  }

 private:
  static size_t at(char a, char b) { return size_t{static_cast<uint8_t>(a)} << 8 | static_cast<uint8_t>(b); }

  std::bitset<65536> joined_;
};

}  // namespace hlat::tokenizer
