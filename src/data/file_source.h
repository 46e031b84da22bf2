// A source of files: all their documents as one array, tokenized as they are read. A document ends with EOS; a text of more than
// kPieceBytes is tokenized in pieces, cut where no token changes.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/reader/document_file.h"
#include "data/source.h"
#include "data/tokenizer/tokenizer.h"

namespace hlat {

inline constexpr uint64_t kPieceBytes = 131'072;  // of text, or four for each token of a file that holds tokens

struct SpecialTokens {
  int32_t eos = 0;
  std::optional<int32_t> bos;
};

// The text of tokens of one document, without those special tokens at its ends.
std::string text_of(const Tokenizer& tokenizer, const SpecialTokens& special, std::span<const int32_t> ids);

class FileSource : public DocumentSource {
 public:
  // tokenizer must outlive the source.
  FileSource(std::string name, std::vector<std::unique_ptr<DocumentFile>> files, const Tokenizer& tokenizer, const SpecialTokens& special);

  const std::string& name() const override { return name_; }
  uint64_t documents() const override { return starts_.back(); }
  uint64_t hash(uint64_t document) const override;
  uint64_t size(uint64_t document) const override;
  uint64_t bytes() const override { return bytes_; }
  std::unique_ptr<DocumentReader> reader() const override;
  std::vector<uint64_t> identity() const override { return identity_; }
  std::string part_name(size_t part) const override { return files_[part]->report().path; }
  DocumentPlace place_of(uint64_t document) const override {
    const Place p = place(document);
    return {p.file->report().path, p.document};
  }

  const std::vector<std::unique_ptr<DocumentFile>>& files() const { return files_; }
  uint64_t empty() const { return empty_; }  // documents without text
  // What is to be said of files with bad documents or breaks; of a few of them when there are many.
  std::vector<std::string> bad_files() const;
  uint64_t text_bytes(uint64_t document) const;               // 0 for tokens
  void read_text(uint64_t document, std::string& out) const;  // nothing for tokens

 private:
  friend class FileReader;
  struct Place {
    const DocumentFile* file = nullptr;
    uint64_t document = 0;  // in the file
  };
  Place place(uint64_t document) const;

  std::string name_;
  std::vector<std::unique_ptr<DocumentFile>> files_;
  std::vector<uint64_t> starts_;  // first document of each file; then the number of all
  std::vector<uint64_t> identity_;
  uint64_t bytes_ = 0, empty_ = 0;
  const Tokenizer& tokenizer_;
  SpecialTokens special_;
};

}  // namespace hlat
