// A .txt file without separators: one document, of any size. A byte order mark is not part of it. The scan checks UTF-8 and hashes piece by
// piece.
#include <simdjson.h>

#include <algorithm>
#include <vector>

#include "data/reader/content_hash.h"
#include "data/reader/indexed_file.h"
#include "data/reader/scan.h"
#include "data/reader/utf8.h"

namespace hlat::reader {
namespace {

constexpr size_t kCarry = 3;  // the most bytes of a character that a piece can leave to the next

uint64_t text_begin(const InputFile& file) {
  std::string mark(kByteOrderMark.size(), '\0');
  mark.resize(file.read(0, mark.data(), mark.size()));
  return mark == kByteOrderMark ? mark.size() : 0;
}

class WholeFile final : public IndexedFile {
 public:
  WholeFile(InputFile file, std::unique_ptr<Index> index) : IndexedFile(std::move(file), std::move(index)) {}

  uint64_t length(uint64_t document) const override {
    entry(document);  // checks the number
    return index().header().bytes;
  }
  void text_part(uint64_t document, uint64_t begin, uint64_t bytes, std::string& out) const override {
    part_of_file(entry(document), length(document), begin, bytes, out);
  }

 protected:
  void fetch(const IndexEntry& entry, std::string& out) const override {
    check_range(entry.offset, index().header().bytes);
    out.resize(index().header().bytes);
    file().read_exactly(entry.offset, out.data(), out.size());
  }
};

// The number of the first line that is not UTF-8, from 1 within the text.
uint64_t first_bad_line(std::string_view text) {
  for (uint64_t line = 1;; ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (end == text.size() || !simdjson::validate_utf8(text.data(), end)) return line;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

void scan_whole_text(const ScanJob& job) {
  job.index.set_layout(Layout::whole_file);
  const uint64_t begin = text_begin(job.file);
  std::vector<char> buffer(kCarry + kHashPiece);
  char* const piece = buffer.data() + kCarry;
  ScanPart part;
  uint64_t hash = kHashStart;
  uint64_t lines = 0;
  size_t carry = 0;
  for (uint64_t at = begin; at < job.file.size();) {
    const size_t n = static_cast<size_t>(std::min<uint64_t>(kHashPiece, job.file.size() - at));
    job.file.read_exactly(at, piece, n);
    at += n;
    job.advance(at);
    hash = hash_piece(hash, {piece, n});
    std::string_view text(piece - carry, n + carry);
    carry = at < job.file.size() ? unfinished_bytes(text) : 0;
    text.remove_suffix(carry);
    if (!simdjson::validate_utf8(text.data(), text.size())) {
      part.add_bad(lines + first_bad_line(text), "invalid UTF-8");
      return job.index.add(part);
    }
    lines += static_cast<uint64_t>(std::count(text.begin(), text.end(), '\n'));
    std::copy_n(piece + n - carry, carry, piece - carry);
  }
  if (job.file.size() > begin) {
    part.entries.push_back({.offset = begin, .stored = 0, .length = 0, .hash = hash});
    part.bytes = job.file.size() - begin;
  }
  job.index.add(part);
}

std::unique_ptr<DocumentFile> make_whole_file(InputFile file, std::unique_ptr<Index> index) {
  return std::make_unique<WholeFile>(std::move(file), std::move(index));
}

}  // namespace hlat::reader
