// A tokenizer and document files in memory, for tests of what stands between readers and lanes.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "data/reader/document_file.h"
#include "data/tokenizer/tokenizer.h"

namespace hlat {

// Words with the blank before them: each is spelled by its bytes, id = byte + 3 for the first of a word and byte + 259 inside it,
// so ids show how the text was cut. 0 is unknown, 1 begins and 2 ends a document. A text starts with a blank that is not in it.
class ByteTokenizer : public Tokenizer {
 public:
  std::unique_ptr<Encoder> encoder() const override { return std::make_unique<ByteEncoder>(); }
  std::string decode(std::span<const int32_t> ids) const override {
    std::string text;
    for (const int32_t id : ids) text += id < 3 ? "<" + std::to_string(id) + ">" : std::string(1, static_cast<char>((id - 3) % 256));
    return text;
  }
  int64_t vocab_size() const override { return 515; }
  std::optional<int32_t> id_of(std::string_view token) const override {
    return token == "<eos>" ? std::optional<int32_t>(2) : std::nullopt;
  }
  std::optional<int32_t> eos() const override { return 2; }
  std::optional<int32_t> bos() const override { return 1; }
  bool is_fallback(int32_t id) const override { return id >= 259 + 0x80; }
  std::string describe() const override { return "bytes"; }
  uint64_t fingerprint() const override { return 1; }

 private:
  class ByteEncoder : public Encoder {
   public:
    void encode(std::string_view text, std::vector<int32_t>& ids) override { spell(text, true, ids); }
    void resume(std::string_view text, std::vector<int32_t>& ids) override { spell(text, false, ids); }
    size_t cut(std::string_view text, size_t limit) const override {
      if (text.size() <= limit) return text.size();
      const size_t blank = text.substr(0, limit + 1).rfind(' ');
      return blank == std::string_view::npos ? 0 : blank;
    }

   private:
    static void spell(std::string_view text, bool starts, std::vector<int32_t>& ids) {
      for (size_t i = 0; i < text.size(); ++i) {
        const bool first = text[i] == ' ' || (i == 0 && starts);
        ids.push_back(static_cast<unsigned char>(text[i]) + (first ? 3 : 259));
      }
    }
  };
};

// Texts, or lists of ids, as one file.
class MemoryFile : public DocumentFile {
 public:
  MemoryFile(std::string path, std::vector<std::string> texts) : texts_(std::move(texts)) {
    report_ = {.path = std::move(path), .documents = texts_.size(), .bytes = 0, .bad = 0, .examples = {}};
    for (const std::string& t : texts_) report_.bytes += t.size();
  }
  MemoryFile(std::string path, std::vector<std::vector<int32_t>> ids) : ids_(std::move(ids)) {
    report_ = {.path = std::move(path), .documents = ids_.size(), .bytes = 0, .bad = 0, .examples = {}};
    for (const auto& d : ids_) report_.bytes += 4 * d.size();
  }
  const FileReport& report() const override { return report_; }
  uint64_t hash(uint64_t i) const override {
    return tokenized() ? hash_name(std::to_string(ids_[i].size()) + "." + std::to_string(i)) : hash_name(texts_[i]);
  }
  uint64_t length(uint64_t i) const override { return tokenized() ? ids_[i].size() : texts_[i].size(); }
  uint64_t fingerprint() const override {
    uint64_t h = 1;
    for (uint64_t i = 0; i < documents(); ++i) h = h * 31 + hash(i);
    return h;
  }
  bool tokenized() const override { return !ids_.empty(); }
  void text(uint64_t i, std::string& out) const override { out = texts_[i]; }
  void tokens(uint64_t i, std::vector<int32_t>& out) const override { out = ids_[i]; }
  void text_part(uint64_t i, uint64_t begin, uint64_t bytes, std::string& out) const override { out = texts_[i].substr(begin, bytes); }

 private:
  FileReport report_;
  std::vector<std::string> texts_;
  std::vector<std::vector<int32_t>> ids_;
};

}  // namespace hlat
