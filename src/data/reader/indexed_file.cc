#include "data/reader/indexed_file.h"

#include <algorithm>

#include "base/error.h"
#include "data/reader/content_hash.h"
#include "data/reader/json_line.h"
#include "data/reader/utf8.h"

namespace hlat::reader {

IndexedFile::IndexedFile(InputFile file, std::unique_ptr<Index> index)
    : file_(std::move(file)), index_(std::move(index)), report_(index_->report(file_.path())) {}

void IndexedFile::watch() const {
  constexpr uint32_t kEvery = 1024;  // a look costs about as much as a read
  if (reads_.fetch_add(1, std::memory_order_relaxed) % kEvery == kEvery - 1) file_.check_unchanged();
}

void IndexedFile::fail_changed() const {
  file_.check_unchanged();
  fail("{} does not have the content that its index {} has: changed while it was in use, or damaged", file_.path(), index_->path());
}

void IndexedFile::text(uint64_t document, std::string& out) const {
  watch();
  const IndexEntry e = entry(document);
  fetch(e, out);
  if (hash_content(out) != e.hash) fail_changed();
}

void IndexedFile::tokens(uint64_t /*document*/, std::vector<int32_t>& /*out*/) const {
  HLAT_CHECK(false, "{} holds text, not tokens", file_.path());
}

void IndexedFile::text_part(uint64_t document, uint64_t begin, uint64_t bytes, std::string& out) const {
  // Parts are mostly asked for one after the other: a thread keeps the text it cuts them from until its last part. Texts with equal
  // hashes are equal, whichever file they are from.
  struct Whole {
    uint64_t hash = 0;
    std::string text;
  };
  thread_local Whole whole;
  const IndexEntry e = entry(document);
  if (whole.text.size() != e.length || whole.hash != e.hash) {
    whole.hash = e.hash;
    text(document, whole.text);
  }
  watch();
  out.assign(whole.text, std::min<uint64_t>(begin, whole.text.size()), bytes);
  if (begin + out.size() < whole.text.size())
    out.resize(out.size() - unfinished_bytes(out));
  else
    whole = {};
}

void IndexedFile::part_of_file(const IndexEntry& entry, uint64_t length, uint64_t begin, uint64_t bytes, std::string& out) const {
  const uint32_t touched = file_.check_unchanged();
  check_range(entry.offset, length);
  check_touched(entry, touched, [&] { return hash_in_file(entry.offset, length); });
  begin = std::min(begin, length);
  out.resize(std::min(bytes, length - begin));
  file_.read_exactly(entry.offset + begin, out.data(), out.size());
  if (begin + out.size() < length) out.resize(out.size() - unfinished_bytes(out));
}

void IndexedFile::check_touched(const IndexEntry& entry, uint32_t touched, const std::function<uint64_t()>& hash_now) const {
  struct Checked {
    uint64_t hash = 0;
    uint64_t file = 0;
    uint32_t touched = 0;
    bool operator==(const Checked&) const = default;
  };
  thread_local Checked checked;
  const Checked now{entry.hash, fingerprint(), touched};
  if (touched == 0 || checked == now) return;
  if (hash_now() != entry.hash) fail_changed();
  checked = now;
}

uint64_t IndexedFile::hash_in_file(uint64_t offset, uint64_t length) const {
  uint64_t hash = kHashStart;
  std::vector<char> piece(kHashPiece);
  uint64_t at = 0;
  do {
    const auto n = static_cast<size_t>(std::min<uint64_t>(piece.size(), length - at));
    file_.read_exactly(offset + at, piece.data(), n);
    hash = hash_piece(hash, {piece.data(), n});
    at += n;
  } while (at < length);
  return hash;
}

namespace {

// Texts that stand in the data file as they are: one read.
class InPlaceFile final : public IndexedFile {
 public:
  InPlaceFile(InputFile file, std::unique_ptr<Index> index) : IndexedFile(std::move(file), std::move(index)) {}

  void text_part(uint64_t document, uint64_t begin, uint64_t bytes, std::string& out) const override {
    const IndexEntry e = entry(document);
    part_of_file(e, e.length, begin, bytes, out);
  }

 protected:
  void fetch(const IndexEntry& entry, std::string& out) const override {
    check_range(entry.offset, entry.length);
    out.resize(entry.length);
    file().read_exactly(entry.offset, out.data(), out.size());
  }
};

// A plain .jsonl file: one read of the line, one parse.
class JsonLinesFile final : public IndexedFile {
 public:
  JsonLinesFile(InputFile file, std::unique_ptr<Index> index, const std::string& field)
      : IndexedFile(std::move(file), std::move(index)), field_(field) {}

 protected:
  void fetch(const IndexEntry& entry, std::string& out) const override {
    // Buffers of a thread, whichever files it reads; they carry nothing from one read to the next.
    thread_local JsonLineParser parser;
    thread_local std::vector<char> line;
    check_range(entry.offset, entry.stored);
    line.resize(entry.stored + kJsonPadding);
    file().read_exactly(entry.offset, line.data(), entry.stored);
    const JsonText found = parser.parse({line.data(), entry.stored}, field_, JsonStrings::taken);
    if (found.kind != JsonText::Kind::text) fail_changed();
    out = found.text;
    if (line.capacity() > kKeep) line = {};
  }

 private:
  static constexpr size_t kKeep = 16 << 20;
  std::string field_;
};

}  // namespace

std::unique_ptr<DocumentFile> make_in_place(InputFile file, std::unique_ptr<Index> index) {
  return std::make_unique<InPlaceFile>(std::move(file), std::move(index));
}

std::unique_ptr<DocumentFile> make_json_lines(InputFile file, std::unique_ptr<Index> index, const std::string& field) {
  return std::make_unique<JsonLinesFile>(std::move(file), std::move(index), field);
}

}  // namespace hlat::reader
