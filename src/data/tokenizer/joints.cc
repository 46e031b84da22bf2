// Collects the neighbours within tokens.
#include "data/tokenizer/joints.h"

namespace hlat::tokenizer {

Joints::Joints(const IdMap& ids, bool bytes_for_unknown) {
  const auto ascii = [](int c) { return c < 0x80; };
  const auto unknown = [&](int c) { return ascii(c) && !bytes_for_unknown && !ids.contains(std::string(1, static_cast<char>(c))); };
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b)
      if (!ascii(a) || !ascii(b) || unknown(a) || unknown(b)) joined_.set(at(static_cast<char>(a), static_cast<char>(b)));
  }
  for (const auto& [token, id] : ids)
    for (size_t i = 1; i < token.size(); ++i) joined_.set(at(token[i - 1], token[i]));
  for (int a = 0; a < 256; ++a)
    if (a != ' ') joined_.reset(at(static_cast<char>(a), ' '));
}

}  // namespace hlat::tokenizer
