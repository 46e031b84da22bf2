#include "data/reader/indexed_file.h"

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
  text(document, out);
  out.erase(0, begin);
  if (out.size() <= bytes) return;
  out.resize(bytes);
  out.resize(out.size() - unfinished_bytes(out));
}

}  // namespace hlat::reader
