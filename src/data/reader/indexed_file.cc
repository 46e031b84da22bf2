#include "data/reader/indexed_file.h"

#include <algorithm>

#include "base/error.h"
#include "data/reader/content_hash.h"
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

}  // namespace hlat::reader
