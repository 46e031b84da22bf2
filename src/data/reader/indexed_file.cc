#include "data/reader/indexed_file.h"

#include <algorithm>

#include "base/error.h"
#include "data/reader/content_hash.h"
#include "data/reader/json_line.h"
#include "data/reader/utf8.h"

namespace hlat::reader {

IndexedFile::IndexedFile(InputFile file, std::unique_ptr<Index> index)
    : file_(std::move(file)), index_(std::move(index)), report_(index_->report(file_.path())) {}

const IndexEntry& IndexedFile::entry(uint64_t document) const {
  HLAT_CHECK(document < index_->entries().size(), "document {} of {} in {}", document, index_->entries().size(), file_.path());
  return index_->entries()[document];
}

void IndexedFile::watch() const {
  constexpr uint32_t kEvery = 1024;  // a look costs about as much as a read
  if (reads_.fetch_add(1, std::memory_order_relaxed) % kEvery == 0) file_.check_unchanged();
}

void IndexedFile::fail_changed() const {
  file_.check_unchanged();
  fail("{} does not have the content that its index {} has: changed while it was in use, or damaged", file_.path(), index_->file().path());
}

void IndexedFile::text(uint64_t document, std::string& out) const {
  watch();
  const IndexEntry& e = entry(document);
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
  const IndexEntry& e = entry(document);
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

void IndexedFile::part_of_file(uint64_t offset, uint64_t length, uint64_t begin, uint64_t bytes, std::string& out) const {
  file_.check_unchanged();  // a part has no hash of its own
  begin = std::min(begin, length);
  out.resize(std::min(bytes, length - begin));
  file_.read_exactly(offset + begin, out.data(), out.size());
  if (begin + out.size() < length) out.resize(out.size() - unfinished_bytes(out));
}

namespace {

// Texts that stand in the data file as they are: one read.
class InPlaceFile final : public IndexedFile {
 public:
  InPlaceFile(InputFile file, std::unique_ptr<Index> index) : IndexedFile(std::move(file), std::move(index)) {}

  void text_part(uint64_t document, uint64_t begin, uint64_t bytes, std::string& out) const override {
    part_of_file(entry(document).offset, entry(document).length, begin, bytes, out);
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
    const JsonText found = parser.parse({line.data(), entry.stored}, field_);
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
