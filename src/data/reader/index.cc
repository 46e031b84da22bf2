#include "data/reader/index.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <charconv>
#include <cstring>

#include "base/error.h"
#include "data/reader/content_hash.h"

namespace hlat::reader {
namespace {

bool sound(const IndexHeader& h, uint64_t file_bytes) {
  const IndexHeader expected;
  if (std::memcmp(h.magic, expected.magic, sizeof h.magic) != 0 || h.version != expected.version || h.header_hash != header_hash(h))
    return false;
  if (h.body < sizeof h || h.body % alignof(IndexEntry) != 0 || h.body > file_bytes || file_bytes - h.body != h.body_bytes) return false;
  const uint64_t records = h.body_bytes / sizeof(IndexEntry);
  return h.documents <= records && h.blocks <= records - h.documents;
}

// Blocks follow each other in text and lie before the body, so a look-up can trust them.
bool sound(std::span<const IndexBlock> blocks, uint64_t body) {
  uint64_t text = 0;
  for (const IndexBlock& b : blocks) {
    if (b.text != text || b.length > kBlockText || b.offset > body || b.stored > body - b.offset) return false;
    text += b.length;
  }
  return true;
}

}  // namespace

uint64_t header_hash(const IndexHeader& header) {
  return hash_content({reinterpret_cast<const char*>(&header), offsetof(IndexHeader, header_hash)});
}

std::unique_ptr<Index> Index::load(const std::string& path, const IndexKey& key, const ReaderOptions& options) {
  if (::access(path.c_str(), R_OK) != 0) return nullptr;
  try {
    std::unique_ptr<Index> index(new Index(InputFile(path)));
    if (index->attach(key, options)) return index;
  } catch (const Error&) {
    // Gone or unreadable since: as if it were not there.
  }
  return nullptr;
}

bool Index::attach(const IndexKey& key, const ReaderOptions& options) {
  if (file_.size() < sizeof header_) return false;
  file_.read_exactly(0, reinterpret_cast<char*>(&header_), sizeof header_);
  if (!sound(header_, file_.size()) || header_.key != key) return false;
  if (options.verified && header_.digest != *options.verified) return false;

  const long page = ::sysconf(_SC_PAGESIZE);
  const uint64_t begin = header_.body / static_cast<uint64_t>(page) * static_cast<uint64_t>(page);
  map_bytes_ = file_.size() - begin;
  if (map_bytes_ > 0) {
    void* map = ::mmap(nullptr, map_bytes_, PROT_READ, MAP_SHARED, file_.descriptor(), static_cast<off_t>(begin));
    if (map == MAP_FAILED) return false;
    map_ = map;
  }
  const char* body = static_cast<const char*>(map_) + (header_.body - begin);
  entries_ = reinterpret_cast<const IndexEntry*>(body);
  blocks_ = reinterpret_cast<const IndexBlock*>(body + header_.documents * sizeof(IndexEntry));
  const uint64_t tables = header_.documents * sizeof(IndexEntry) + header_.blocks * sizeof(IndexBlock);
  examples_ = {body + tables, header_.body_bytes - tables};
  if (!options.verified) {
    if (options.work != nullptr) ++options.work->indices_hashed;
    if (hash_content({body, header_.body_bytes}) != header_.body_hash || !sound(blocks(), header_.body)) return false;
  }
  if (header_.blocks == 0) file_.release();  // a corpus has more files than a process may have open
  return true;
}

Index::~Index() {
  if (map_) ::munmap(map_, map_bytes_);
}

FileReport Index::report(const std::string& data_path) const {
  FileReport report{.path = data_path, .documents = header_.documents, .bytes = header_.bytes, .bad = header_.bad, .examples = {}};
  for (std::string_view rest = examples_; !rest.empty();) {  // "LINE REASON\n" each
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    BadDocument bad;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), bad.line);
    const size_t digits = static_cast<size_t>(end - line.data());
    if (error == std::errc() && digits < line.size()) bad.reason = line.substr(digits + 1);
    report.examples.push_back(std::move(bad));
  }
  return report;
}

}  // namespace hlat::reader
