// Concatenates what the tokens add.
#include "data/tokenizer/decoder.h"

#include <fmt/format.h>

#include <algorithm>

namespace hlat::tokenizer {

std::string Decoder::decode(std::span<const int32_t> ids) const {
  std::string out;
  size_t first_end = 0;  // where the first token that adds anything ends
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto id = static_cast<size_t>(ids[i]);
    if (i > 0) out += separator;
    if (ids[i] >= 0 && id < bytes.size() && known[id])
      out += bytes[id];
    else
      out += fmt::format("<{}>", ids[i]);
    if (i == 0 && drop_first_spaces) std::erase(out, ' ');
    if (first_end == 0) first_end = out.size();
  }
  size_t n = 0;
  const size_t limit = std::min(strip, strip_first_only ? first_end : out.size());
  while (n < limit && out[n] == strip_char) ++n;
  out.erase(0, n);
  return out;
}

}  // namespace hlat::tokenizer
