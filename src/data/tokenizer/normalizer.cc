// Runs the steps, each from one buffer to the other.
#include "data/tokenizer/normalizer.h"

#include "data/tokenizer/nfc.h"
#include "data/tokenizer/vocab.h"

namespace hlat::tokenizer {

std::string_view unmark_spaces(std::string_view text, std::string& buffer) {
  if (text.find(kSpaceMark) == std::string_view::npos) return text;
  buffer = replace_all(text, kSpaceMark, " ");
  return buffer;
}

std::string_view Normalizer::apply(std::string_view text, bool continues, Buffers& buffers) const {
  if (text.empty()) return text;
  size_t next = 0;  // the buffer that `text` is not in
  const auto take = [&](std::string_view result) {
    if (result.data() == buffers[next].data()) next = 1 - next;
    text = result;
  };
  for (const NormalizerStep& s : steps) {
    std::string& out = buffers[next];
    switch (s.kind) {
      case NormalizerStep::nfc: take(nfc(text, out)); break;
      case NormalizerStep::replace:
        if (text.find(s.from) == std::string_view::npos) break;
        out = replace_all(text, s.from, s.to);
        take(out);
        break;
      case NormalizerStep::prepend:
        if (continues) break;
        out.assign(s.to).append(text);
        take(out);
        break;
    }
  }
  if (marks_spaces) take(unmark_spaces(text, buffers[next]));
  return text;
}

}  // namespace hlat::tokenizer
