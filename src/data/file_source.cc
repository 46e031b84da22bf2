#include "data/file_source.h"

#include <algorithm>

#include "base/error.h"
#include "data/tokenizer/unicode.h"

namespace hlat {

namespace {

constexpr uint64_t kLookAhead = 4096;  // bytes behind a piece, for the search of its end
constexpr uint64_t kLookBack = 16384;  // bytes that a search for a cut reads at a time
constexpr uint64_t kTokenSize = 4;     // of a stored token, in places of its document

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

  uint64_t read(uint64_t document, uint64_t from, uint64_t to, Document& out) override {
    const auto [file, index] = source_.place(document);
    const uint64_t next =
        file->tokenized() ? read_tokens(*file, index, from, to, out.tokens) : read_text(*file, index, from, to, out.tokens);
    if (from == 0 && source_.special_.bos) out.tokens.insert(out.tokens.begin(), *source_.special_.bos);
    if (next == 0 && (out.tokens.empty() || !file->tokenized() || out.tokens.back() != source_.special_.eos))
      out.tokens.push_back(source_.special_.eos);
    return next;
  }

  uint64_t cut(uint64_t document, uint64_t near) override {
    const auto [file, index] = source_.place(document);
    if (file->tokenized()) return near / kTokenSize * kTokenSize;
    // Text without a safe place in as much as a piece is cut anywhere when it is read, so nothing is gained by looking further back.
    const uint64_t least = near > kPieceBytes ? near - kPieceBytes : 0;
    for (uint64_t end = near; end > least;) {
      uint64_t begin = end > kLookBack ? end - kLookBack : 0;
      const uint64_t window = begin;
      file->text_part(index, begin, end - begin + kLookAhead, text_);
      std::string_view text = text_;
      const size_t start = begin == 0 ? 0 : word_start(text);
      text.remove_prefix(start);
      begin += start;
      const uint64_t found = end > begin ? encoder_->cut(text, end - begin) : 0;
      if (found > 0) return begin + found;
      if (window == 0) return 0;
      end = window;
    }
    file->text_part(index, least, near - least + kLookAhead, text_);
    return least + tokenizer::unicode::border_before(text_, near - least);
  }

 private:
  // Where a text that is taken from the middle of a document surely begins a word: at the first blank after something else.
  static size_t word_start(std::string_view text) {
    const auto is_blank = [](char c) { return c == ' ' || c == '\n'; };
    for (size_t i = 1; i < text.size(); ++i)
      if (is_blank(text[i]) && !is_blank(text[i - 1])) return i;
    return text.size();
  }

  uint64_t read_text(const DocumentFile& file, uint64_t index, uint64_t from, uint64_t to, std::vector<int32_t>& ids) {
    const uint64_t length = file.length(index);
    check_inside(file, index, from, length);
    if (length <= kPieceBytes && from == 0 && to >= length) {
      file.text(index, text_);
      encoder_->encode(text_, ids);
      return 0;
    }
    to = std::min(to, length);
    do {  // once, but for text that the tokenizer leaves out altogether
      file.text_part(index, from, kPieceBytes + kLookAhead, text_);
      const std::string_view piece = std::string_view(text_).substr(0, piece_end(text_, to - from));
      HLAT_CHECK(!piece.empty() && piece.size() <= kPieceBytes, "a piece of {} bytes at {} of {}", piece.size(), from, length);
      if (from == 0)
        encoder_->encode(piece, ids);
      else
        encoder_->resume(piece, ids);
      from += piece.size();
    } while (ids.empty() && from < to);
    return from < length ? from : 0;
  }

  // How much of a text of which `left` bytes are to be read makes a piece.
  size_t piece_end(std::string_view text, uint64_t left) const {
    if (left <= kPieceBytes && left <= text.size()) return left;
    if (const size_t cut = encoder_->cut(text, kPieceBytes); cut > 0) return cut;
    return tokenizer::unicode::border_before(text, kPieceBytes);  // no place is safe
  }

  uint64_t read_tokens(const DocumentFile& file, uint64_t index, uint64_t from, uint64_t to, std::vector<int32_t>& ids) {
    const uint64_t size = file.length(index) * kTokenSize;
    check_inside(file, index, from, size);
    const uint64_t end = std::min({from + kPieceBytes, to, size});
    file.tokens_part(index, from / kTokenSize, (end - from) / kTokenSize, ids);
    const int64_t vocab = source_.tokenizer_.vocab_size();
    for (const int32_t id : ids)
      if (id < 0 || id >= vocab)
        fail<UsageError>("{}: document {} has token {}, but the tokenizer's vocabulary has {}", file.report().path, index, id, vocab);
    return end == size ? 0 : end;
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

std::vector<std::string> FileSource::bad_files() const {
  constexpr size_t kShown = 8;
  std::vector<std::string> list;
  uint64_t more = 0, documents = 0;
  for (const auto& f : files_) {
    const FileReport& report = f->report();
    if (report.bad == 0 && !report.broken) continue;
    if (list.size() < kShown)
      list.push_back(describe_bad(report));
    else
      ++more, documents += report.bad;
  }
  if (more > 0)
    list.push_back(fmt::format("source {}: {} more files have bad documents, {} in all, or are broken", name_, more, documents));
  return list;
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

uint64_t FileSource::size(uint64_t document) const {
  const Place p = place(document);
  return p.file->length(p.document) * (p.file->tokenized() ? kTokenSize : 1);
}

std::unique_ptr<DocumentReader> FileSource::reader() const { return std::make_unique<FileReader>(*this); }

}  // namespace hlat
