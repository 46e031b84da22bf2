// First symbols of a word, and merges that follow from ranks.
#include "data/tokenizer/bpe_model.h"

#include <bit>

#include "data/tokenizer/unicode.h"

namespace hlat::tokenizer {
namespace {

class BpeWordEncoder final : public WordEncoder {
 public:
  BpeWordEncoder(const BpeModel& model, const PairTable& pairs) : model_(model), merger_(pairs) {}
  void encode(std::string_view word, std::vector<int32_t>& ids) override { model_.encode(word, merger_, ids); }

 private:
  const BpeModel& model_;
  Merger merger_;
};

}  // namespace

std::unique_ptr<WordEncoder> BpeModel::encoder() const { return std::make_unique<BpeWordEncoder>(*this, pairs_); }

BpeModel::BpeModel(const BpeOptions& options, const IdMap& ids, PairTable pairs, const std::array<int32_t, 256>& byte_tokens)
    : options_(options), pairs_(std::move(pairs)), byte_tokens_(byte_tokens) {
  of_byte_.fill(-1);
  whole_.resize(options_.whole_first ? std::bit_ceil(ids.size() * 2 + 2) : 0);
  for (const auto& [token, id] : ids) {
    if (options_.whole_first) {
      const uint64_t hash = std::hash<std::string_view>{}(token);
      size_t i = hash & (whole_.size() - 1);
      while (whole_[i].id >= 0) i = (i + 1) & (whole_.size() - 1);
      whole_[i] = {static_cast<uint32_t>(hash >> 32), id, static_cast<uint32_t>(whole_bytes_.size()), static_cast<uint32_t>(token.size())};
      whole_bytes_ += token;
    }
    if (options_.bytes) {
      if (token.size() == 1) of_byte_[static_cast<uint8_t>(token[0])] = id;
      continue;
    }
    if (token.empty()) continue;
    const unicode::Char c = unicode::decode_any(token.data(), token.data() + token.size());
    if (c.code == unicode::kInvalid || c.size != token.size()) continue;
    if (c.code >= of_char_.size()) of_char_.resize(c.code + 1, -1);
    of_char_[c.code] = id;
  }
}

void BpeModel::encode(std::string_view word, Merger& merger, std::vector<int32_t>& ids) const {
  ids.clear();
  if (options_.whole_first) {
    if (const int32_t id = whole(word); id >= 0) {
      ids.push_back(id);
      return;
    }
  }
  if (options_.bytes)
    symbols_of_bytes(word, ids);
  else
    symbols_of_characters(word, ids);
  ids.resize(merger.merge(ids));
}

int32_t BpeModel::whole(std::string_view word) const {
  const uint64_t hash = std::hash<std::string_view>{}(word);
  for (size_t i = hash & (whole_.size() - 1); whole_[i].id >= 0; i = (i + 1) & (whole_.size() - 1)) {
    const Whole& w = whole_[i];
    if (w.hash == hash >> 32 && std::string_view(whole_bytes_).substr(w.at, w.size) == word) return w.id;
  }
  return -1;
}

void BpeModel::symbols_of_bytes(std::string_view word, std::vector<int32_t>& ids) const {
  bool after_unknown = false;
  for (const char c : word) {
    const int32_t id = of_byte_[static_cast<uint8_t>(c)];
    if (id >= 0)
      ids.push_back(id);
    else if (options_.unknown >= 0 && !(after_unknown && options_.fuse_unknown))
      ids.push_back(options_.unknown);
    after_unknown = id < 0;
  }
}

bool BpeModel::bytes_of(std::string_view character, std::vector<int32_t>& ids) const {
  for (const char c : character)
    if (byte_tokens_[static_cast<uint8_t>(c)] < 0) return false;
  for (const char c : character) ids.push_back(byte_tokens_[static_cast<uint8_t>(c)]);
  return true;
}

void BpeModel::symbols_of_characters(std::string_view word, std::vector<int32_t>& ids) const {
  // An unknown is held back until a character with a token comes: bytes of a fallback go before it, as in the reference.
  bool held = false;
  for (const char *p = word.data(), *end = p + word.size(); p < end;) {
    const unicode::Char c = unicode::decode(p);
    const std::string_view character(p, c.size);
    p += c.size;
    const int32_t id = c.code < of_char_.size() ? of_char_[c.code] : -1;
    if (id >= 0) {
      if (held) ids.push_back(options_.unknown);
      held = false;
      ids.push_back(id);
      continue;
    }
    if (options_.byte_fallback && bytes_of(options_.space_is_mark && character == " " ? kSpaceMark : character, ids)) continue;
    if (options_.unknown < 0) continue;
    if (held && !options_.fuse_unknown) ids.push_back(options_.unknown);
    held = true;
  }
  if (held) ids.push_back(options_.unknown);
}

std::array<int32_t, 256> find_byte_tokens(const Vocab& vocab) {
  std::array<int32_t, 256> out{};
  for (int b = 0; b < 256; ++b) out[static_cast<size_t>(b)] = vocab.find(token_of_byte(static_cast<uint8_t>(b))).value_or(-1);
  return out;
}

PairTable pairs_of_ranked(const std::vector<RankedToken>& tokens, const IdMap& ids, bool any_byte) {
  struct Pair {
    int32_t a;
    int32_t b;
    PairTable::Merge merge;
  };
  std::vector<Pair> pairs;
  for (const RankedToken& t : tokens) {
    const std::string_view s = t.bytes;
    for (size_t cut = 1; cut < s.size(); ++cut) {
      if (!any_byte && unicode::is_continuation(s[cut])) continue;
      const auto a = ids.find(s.substr(0, cut));
      if (a == ids.end()) continue;
      const auto b = ids.find(s.substr(cut));
      if (b != ids.end()) pairs.push_back({a->second, b->second, {t.rank, t.id}});
    }
  }
  PairTable table(pairs.size());
  for (const Pair& p : pairs) table.set(p.a, p.b, p.merge);
  return table;
}

}  // namespace hlat::tokenizer
