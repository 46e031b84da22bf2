#include "data/file_source.h"

#include <algorithm>

#include "base/error.h"

namespace hlat {

namespace {

constexpr uint64_t kLookAhead = 4096;  // bytes behind a piece, for the search of its end

}  // namespace

std::string text_of(const Tokenizer& tokenizer, const SpecialTokens& special, std::span<const int32_t> ids) {
  if (!ids.empty() && special.bos && ids.front() == *special.bos) ids = ids.subspan(1);
  if (!ids.empty() && ids.back() == special.eos) ids = ids.first(ids.size() - 1);
  return ids.empty() ? "" : tokenizer.decode(ids);
}

// One thread's encoder and text buffer.
class FileReader : public DocumentReader {
 public:
  explicit FileReader(const FileSource& source) : source_(source), encoder_(source.tokenizer_.encoder()) {}

  uint64_t read(uint64_t document, uint64_t from, Document& out) override {
    const auto [file, index] = source_.place(document);
    const uint64_t next = file->tokenized() ? read_tokens(*file, index, from, out.tokens) : read_text(*file, index, from, out.tokens);
    if (from == 0 && source_.special_.bos) out.tokens.insert(out.tokens.begin(), *source_.special_.bos);
    if (next == 0 && (out.tokens.empty() || !file->tokenized() || out.tokens.back() != source_.special_.eos))
      out.tokens.push_back(source_.special_.eos);
    return next;
  }

 private:
  uint64_t read_text(const DocumentFile& file, uint64_t index, uint64_t from, std::vector<int32_t>& ids) {
    const uint64_t length = file.length(index);
    check_inside(file, index, from, length);
    if (length <= kPieceBytes) {
      file.text(index, text_);
      encoder_->encode(text_, ids);
      return 0;
    }
    do {  // once, but for text that the tokenizer leaves out altogether
      file.text_part(index, from, kPieceBytes + kLookAhead, text_);
      std::string_view piece = text_;
      if (from + piece.size() < length || piece.size() > kPieceBytes) piece = piece.substr(0, encoder_->cut(piece, kPieceBytes));
      HLAT_CHECK(!piece.empty() && piece.size() <= kPieceBytes, "a piece of {} bytes at {} of {}", piece.size(), from, length);
      if (from == 0)
        encoder_->encode(piece, ids);
      else
        encoder_->resume(piece, ids);
      from += piece.size();
    } while (ids.empty() && from < length);
    return from < length ? from : 0;
  }

  uint64_t read_tokens(const DocumentFile& file, uint64_t index, uint64_t from, std::vector<int32_t>& ids) {
    file.tokens(index, ids);
    check_inside(file, index, from, ids.size());
    const uint64_t end = std::min<uint64_t>(from + kPieceBytes, ids.size());
    const bool last = end == ids.size();
    ids.resize(end);
    ids.erase(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(from));
    const int64_t vocab = source_.tokenizer_.vocab_size();
    for (const int32_t id : ids)
      if (id < 0 || id >= vocab)
        fail<UsageError>("{}: document {} has token {}, but the tokenizer's vocabulary has {}", file.report().path, index, id, vocab);
    return last ? 0 : end;
  }

  // Only a restored position can be wrong: the state then belongs to other data.
  static void check_inside(const DocumentFile& file, uint64_t index, uint64_t from, uint64_t size) {
    if (from > size) fail("{}: document {} has no piece at {}: the saved position belongs to other data", file.report().path, index, from);
  }

  const FileSource& source_;
  std::unique_ptr<Encoder> encoder_;
  std::string text_;
};

FileSource::FileSource(std::string name, std::vector<std::unique_ptr<DocumentFile>> files, const Tokenizer& tokenizer,
                       const SpecialTokens& special)
    : name_(std::move(name)), files_(std::move(files)), starts_{0}, tokenizer_(tokenizer), special_(special) {
  for (const auto& f : files_) {
    starts_.push_back(starts_.back() + f->documents());
    identity_.push_back(f->fingerprint());
    bytes_ += f->report().bytes;
    empty_ += f->report().empty;
  }
}

FileSource::Place FileSource::place(uint64_t document) const {
  HLAT_CHECK(document < documents(), "document {} of {}", document, documents());
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), document);
  const auto file = static_cast<size_t>(after - starts_.begin()) - 1;
  return {files_[file].get(), document - starts_[file]};
}

uint64_t FileSource::hash(uint64_t document) const {
  const Place p = place(document);
  return p.file->hash(p.document);
}

uint64_t FileSource::text_bytes(uint64_t document) const {
  const Place p = place(document);
  return p.file->tokenized() ? 0 : p.file->length(p.document);
}

void FileSource::read_text(uint64_t document, std::string& out) const {
  const Place p = place(document);
  out.clear();
  if (!p.file->tokenized()) p.file->text(p.document, out);
}

// Four bytes of text make about a token, and a stored token counts four.
uint64_t FileSource::typical_length() const { return 1 + bytes() / 4 / std::max<uint64_t>(1, documents()); }

std::unique_ptr<DocumentReader> FileSource::reader() const { return std::make_unique<FileReader>(*this); }

}  // namespace hlat
