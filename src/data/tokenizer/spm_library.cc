// SentencePiece models through the library: whatever is not plain BPE.
#include <sentencepiece_processor.h>

#include <string>

#include "base/error.h"
#include "base/rng.h"
#include "data/tokenizer/formats.h"
#include "data/tokenizer/unicode.h"
#include "data/tokenizer/vocab.h"

namespace hlat::tokenizer {
namespace {

using sentencepiece::SentencePieceProcessor;

class LibraryEncoder final : public Encoder {
 public:
  explicit LibraryEncoder(const SentencePieceProcessor& processor) : processor_(processor) {}

  void encode(std::string_view text, std::vector<int32_t>& ids) override {
    text = unicode::valid(text, clean_);
    const auto status = processor_.Encode(absl::string_view(text.data(), text.size()), &ids_);
    if (!status.ok()) fail("sentencepiece: {}", status.ToString());
    ids.insert(ids.end(), ids_.begin(), ids_.end());
  }

  // A cut is before a space, which the library adds to the start of a text.
  void resume(std::string_view text, std::vector<int32_t>& ids) override { encode(text.starts_with(' ') ? text.substr(1) : text, ids); }

  size_t cut(std::string_view text, size_t limit) const override {
    if (limit >= text.size()) return text.size();
    for (size_t at = limit; at > 0; --at)
      if (is_border(text, at)) return at;
    return 0;
  }

 private:
  // One space between ASCII: models may rewrite other characters together with their neighbours.
  static bool is_border(std::string_view text, size_t at) {
    const auto plain = [](char c) { return c > ' ' && c <= '~'; };
    return text[at] == ' ' && plain(text[at - 1]) && at + 1 < text.size() && plain(text[at + 1]);
  }

  const SentencePieceProcessor& processor_;
  std::string clean_;
  std::vector<int> ids_;
};

class LibraryTokenizer final : public Tokenizer {
 public:
  LibraryTokenizer(std::string_view content, const SpmModel& model)
      : fingerprint_(hash_name(content)), unigram_(model.model_type == SpmModel::unigram) {
    const auto status = processor_.LoadFromSerializedProto(absl::string_view(content.data(), content.size()));
    if (!status.ok()) fail("sentencepiece: {}", status.ToString());
    for (size_t i = 0; i < model.pieces.size(); ++i) vocab_.emplace(model.pieces[i].text, static_cast<int32_t>(i));
  }

  std::unique_ptr<Encoder> encoder() const override { return std::make_unique<LibraryEncoder>(processor_); }

  std::string decode(std::span<const int32_t> ids) const override {
    std::string out;
    std::vector<int> good;
    // Runs of known ids go to the library, so that the space at the start of the text is dropped once.
    const auto flush = [&] {
      std::string text;
      const auto status = processor_.Decode(good, &text);
      if (!status.ok()) fail("sentencepiece: {}", status.ToString());
      out += text;
      good.clear();
    };
    for (const int32_t id : ids) {
      if (id >= 0 && id < processor_.GetPieceSize()) {
        good.push_back(id);
        continue;
      }
      flush();
      out += fmt::format("<{}>", id);
    }
    flush();
    return out;
  }

  int64_t vocab_size() const override { return processor_.GetPieceSize(); }
  std::optional<int32_t> id_of(std::string_view token) const override {
    const auto it = vocab_.find(token);
    return it == vocab_.end() ? std::nullopt : std::optional(it->second);
  }
  std::optional<int32_t> eos() const override { return known(processor_.eos_id()); }
  std::optional<int32_t> bos() const override { return known(processor_.bos_id()); }
  bool is_fallback(int32_t id) const override {
    return id >= 0 && id < processor_.GetPieceSize() && (processor_.IsUnknown(id) || processor_.IsByte(id));
  }
  std::string describe() const override {
    return fmt::format("SentencePiece {} by its library, {} tokens", unigram_ ? "unigram" : "model", processor_.GetPieceSize());
  }
  uint64_t fingerprint() const override { return fingerprint_; }

 private:
  static std::optional<int32_t> known(int id) { return id >= 0 ? std::optional<int32_t>(id) : std::nullopt; }

  SentencePieceProcessor processor_;
  IdMap vocab_;
  uint64_t fingerprint_;
  bool unigram_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_library_tokenizer(std::string_view content, const SpmModel& model) {
  return std::make_unique<LibraryTokenizer>(content, model);
}

}  // namespace hlat::tokenizer
