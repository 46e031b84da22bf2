// Encoding of documents: the hot path. A word costs its scan and one look-up; merges run for words that no cache knows.
#include "data/tokenizer/bpe_tokenizer.h"

#include <fmt/format.h>

#include <array>

#include "data/tokenizer/cut.h"
#include "data/tokenizer/unicode.h"
#include "data/tokenizer/word_cache.h"

namespace hlat::tokenizer {
namespace {

class BpeEncoder final : public Encoder {
 public:
  explicit BpeEncoder(const BpeParts& parts) : parts_(parts), splitter_(parts.steps), merger_(parts.model->pairs()) {}

  void encode(std::string_view text, std::vector<int32_t>& ids) override { document(text, TextStart::document, ids); }
  void resume(std::string_view text, std::vector<int32_t>& ids) override { document(text, TextStart::continued, ids); }
  size_t cut(std::string_view text, size_t limit) const override { return find_cut(parts_, text, limit); }

 private:
  void document(std::string_view text, TextStart start, std::vector<int32_t>& ids) {
    out_ = &ids;
    pending_ = queued_ = 0;
    text = unicode::valid(text, clean_);
    split(parts_.raw, text, start, [this](std::string_view piece, TextStart s) {
      const std::string_view normal = parts_.normalizer.apply(piece, s == TextStart::continued, normal_);
      split(parts_.normalized, normal, s, [this](std::string_view p, TextStart at) {
        splitter_.run(p, at, [this](const char* begin, const char* end, const char* limit) { word(begin, end, limit); });
      });
    });
    look_up();
  }

  template <class Piece>
  void split(const AddedTokens& added, std::string_view text, TextStart start, const Piece& piece) {
    if (added.empty()) {
      if (!text.empty()) piece(text, start);
      return;
    }
    added.split(
        text, [&](std::string_view p) { piece(p, p.data() == text.data() ? start : TextStart::later); },
        [this](int32_t id) {
          look_up();
          put({&id, 1});
        });
  }

  // Short words wait in a queue while their place in the cache comes nearer. Their bytes are in the key, so the text may go.
  void word(const char* begin, const char* end, const char* limit) {
    const std::string_view w(begin, static_cast<size_t>(end - begin));
    if (w.size() > ShortWordCache::kMaxBytes) {
      look_up();
      encode_word(w, w.size() <= LongWordCache::kMaxBytes);
      return;
    }
    const ShortWordCache::Key key = ShortWordCache::key_of(w, limit - begin >= 16);
    short_.prefetch(key);
    queue_[queued_++] = key;
    if (queued_ == queue_.size()) look_up();
  }

  void look_up() {
    for (size_t i = 0; i < queued_; ++i) {
      const ShortWordCache::Entry* entry = short_.find(queue_[i]);
      if (entry == nullptr) [[unlikely]] {
        const ShortWordCache::Key key = queue_[i];
        const std::span<const int32_t> ids = encode_word(ShortWordCache::bytes_of(key), true);
        if (ids.size() <= ShortWordCache::kMaxIds) short_.put(key, ids);
        continue;
      }
      // All of the entry's room is copied, which is cheaper than asking how much of it is used.
      std::memcpy(&buffer_[pending_], entry->ids.data(), sizeof entry->ids);
      pending_ += entry->count;
    }
    queued_ = 0;
    flush();
  }

  std::span<const int32_t> encode_word(std::string_view w, bool cached) {
    std::span<const int32_t> ids;
    if (!cached || !long_.find(w, ids)) {
      parts_.model->encode(w, merger_, word_ids_);
      ids = word_ids_;
      if (cached) long_.put(w, ids);
    }
    put(ids);
    return ids;
  }

  void put(std::span<const int32_t> ids) {
    flush();
    out_->insert(out_->end(), ids.begin(), ids.end());
  }

  void flush() {
    out_->insert(out_->end(), buffer_.begin(), buffer_.begin() + static_cast<ptrdiff_t>(pending_));
    pending_ = 0;
  }

  const BpeParts& parts_;
  Splitter splitter_;
  Merger merger_;
  ShortWordCache short_;
  LongWordCache long_;
  std::string clean_;
  Normalizer::Buffers normal_;
  std::vector<int32_t> word_ids_;
  std::vector<int32_t>* out_ = nullptr;
  std::array<ShortWordCache::Key, 64> queue_{};
  size_t queued_ = 0;
  std::array<int32_t, 64 * ShortWordCache::kMaxIds> buffer_{};  // room for the ids of a full queue
  size_t pending_ = 0;                                          // ids in the buffer
};

class BpeTokenizer final : public Tokenizer {
 public:
  explicit BpeTokenizer(BpeParts parts) : parts_(std::move(parts)) {}

  std::unique_ptr<Encoder> encoder() const override { return std::make_unique<BpeEncoder>(parts_); }
  std::string decode(std::span<const int32_t> ids) const override { return parts_.decoder.decode(ids); }
  int64_t vocab_size() const override { return parts_.vocab.size(); }
  std::optional<int32_t> id_of(std::string_view token) const override { return parts_.vocab.find(token); }
  std::optional<int32_t> eos() const override { return parts_.eos; }
  std::optional<int32_t> bos() const override { return parts_.bos; }
  bool is_fallback(int32_t id) const override {
    return id >= 0 && static_cast<size_t>(id) < parts_.fallback.size() && parts_.fallback[static_cast<size_t>(id)];
  }
  std::string describe() const override { return fmt::format("{}, {} tokens", parts_.kind, parts_.vocab.size()); }
  uint64_t fingerprint() const override { return parts_.fingerprint; }

 private:
  BpeParts parts_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_bpe_tokenizer(BpeParts parts) { return std::make_unique<BpeTokenizer>(std::move(parts)); }

}  // namespace hlat::tokenizer
