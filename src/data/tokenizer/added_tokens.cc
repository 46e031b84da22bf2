// Search for added tokens: two bytes rule out nearly every place, then the candidates are compared.
#include "data/tokenizer/added_tokens.h"

#include <cstring>

#include "data/tokenizer/unicode.h"

namespace hlat::tokenizer {
namespace {

size_t byte(char c) { return static_cast<uint8_t>(c); }

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, bool space_is_mark) : tokens_(std::move(tokens)), space_is_mark_(space_is_mark) {
  std::erase_if(tokens_, [](const AddedToken& t) { return t.text.empty(); });
  std::stable_sort(tokens_.begin(), tokens_.end(), [](const AddedToken& a, const AddedToken& b) {
    return byte(a.text[0]) != byte(b.text[0]) ? byte(a.text[0]) < byte(b.text[0]) : a.text.size() > b.text.size();
  });
  first_.assign(257, 0);
  for (const AddedToken& t : tokens_) {
    ++first_[byte(t.text[0]) + 1];
    longest_ = std::max(longest_, t.text.size());
    if (first_bytes_.find(t.text[0]) == std::string::npos) first_bytes_.push_back(t.text[0]);
    for (size_t second = 0; second < 256; ++second)
      if (t.text.size() == 1 || second == byte(t.text[1])) starts_.set(byte(t.text[0]) << 8 | second);
  }
  for (size_t b = 0; b < 256; ++b) first_[b + 1] += first_[b];
}

const AddedToken* AddedTokens::longest_at(std::string_view text, size_t at) const {
  const size_t b = byte(text[at]);
  for (uint32_t i = first_[b]; i < first_[b + 1]; ++i)
    if (text.substr(at).starts_with(tokens_[i].text)) return &tokens_[i];
  return nullptr;
}

AddedTokens::Match AddedTokens::find(std::string_view text, size_t from) const {
  const bool one = first_bytes_.size() == 1;
  for (size_t at = from; at < text.size(); ++at) {
    if (one) {
      const void* p = std::memchr(text.data() + at, first_bytes_[0], text.size() - at);
      if (p == nullptr) return {};
      at = static_cast<size_t>(static_cast<const char*>(p) - text.data());
    }
    // At the end there is no second byte: any will do, the comparison decides.
    if (at + 1 < text.size() && !starts_[byte(text[at]) << 8 | byte(text[at + 1])]) continue;
    if (const AddedToken* t = longest_at(text, at)) return {t, at};
  }
  return {};
}

bool AddedTokens::stands_alone(std::string_view text, const Match& m) const {
  if (!m.token->single_word) return true;
  const auto part = [](unicode::Char c) { return c.code != unicode::kInvalid && (unicode::traits(c.code) & unicode::kWordPart) != 0; };
  const char* begin = text.data() + m.at;
  const char* end = begin + m.token->text.size();
  const char* text_end = text.data() + text.size();
  return !(m.at > 0 && part(unicode::decode_before(text.data(), begin))) && !(end < text_end && part(unicode::decode_any(end, text_end)));
}

bool AddedTokens::is_space(uint32_t code) const {
  return code != unicode::kInvalid && unicode::kind(code) == unicode::kSpace && !(space_is_mark_ && code == ' ');
}

size_t AddedTokens::space_before(std::string_view text, size_t at) const {
  while (at > 0) {
    const unicode::Char c = unicode::decode_before(text.data(), text.data() + at);
    if (!is_space(c.code)) break;
    at -= c.size;
  }
  return at;
}

size_t AddedTokens::space_after(std::string_view text, size_t at) const {
  while (at < text.size()) {
    const unicode::Char c = unicode::decode_any(text.data() + at, text.data() + text.size());
    if (!is_space(c.code)) break;
    at += c.size;
  }
  return at;
}

bool AddedTokens::touches(std::string_view text, size_t at) const {
  for (size_t from = at > longest_ ? at - longest_ : 0; from <= at && from < text.size(); ++from) {
    const size_t b = byte(text[from]);
    for (uint32_t i = first_[b]; i < first_[b + 1]; ++i)
      if (from + tokens_[i].text.size() >= at && text.substr(from).starts_with(tokens_[i].text)) return true;
  }
  return false;
}

}  // namespace hlat::tokenizer
