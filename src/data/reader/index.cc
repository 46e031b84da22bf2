#include "data/reader/index.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <span>

#include "base/error.h"
#include "base/file.h"
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

IndexFile::Map::Map(const InputFile& file) : bytes(file.size()) {
  if (bytes == 0) return;
  void* map = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.handle()->fd(), 0);
  if (map == MAP_FAILED) fail_storage(errno, "cannot map " + file.path());
  data = static_cast<const char*>(map);
}

IndexFile::Map::~Map() {
  if (data != nullptr) ::munmap(const_cast<char*>(data), bytes);
}

IndexFile::IndexFile(InputFile file) : file_(std::move(file)) {
  if (file_.files()->take_map()) try {
      kept_ = std::make_unique<Map>(file_);
    } catch (const Error&) {
      file_.files()->return_map();
      throw;
    }
}

IndexFile::~IndexFile() {
  if (kept_) file_.files()->return_map();
}

std::unique_ptr<Index> Index::load(const std::string& path, const IndexKey& key, const ReaderOptions& options) {
  if (::access(path.c_str(), R_OK) != 0) return nullptr;
  try {
    const auto file = std::make_shared<const IndexFile>(InputFile(path, options.files));
    auto index = part_of(file, 0, file->input().size(), key, options);
    if (index && index->header().blocks == 0) file->input().release();
    return index;
  } catch (const Error&) {
    return nullptr;  // gone or unreadable since: as if it were not there
  }
}

std::unique_ptr<Index> Index::part_of(std::shared_ptr<const IndexFile> file, uint64_t begin, uint64_t bytes, const IndexKey& key,
                                      const ReaderOptions& options) {
  if (begin > file->input().size() || bytes > file->input().size() - begin) return nullptr;
  std::unique_ptr<Index> index(new Index(std::move(file), begin));
  return index->attach(bytes, key, options) ? std::move(index) : nullptr;
}

bool Index::attach(uint64_t bytes, const IndexKey& key, const ReaderOptions& options) {
  if (bytes < sizeof header_) return false;
  return file_->look([&](const char* data) {
    data += begin_;
    std::memcpy(&header_, data, sizeof header_);
    if (!sound(header_, bytes) || header_.key != key) return false;
    if (options.verified) return header_.digest == *options.verified;
    if (options.work != nullptr) ++std::atomic_ref(options.work->indices_hashed);
    const char* body = data + header_.body;
    const auto* blocks = reinterpret_cast<const IndexBlock*>(body + header_.documents * sizeof(IndexEntry));
    return hash_content({body, header_.body_bytes}) == header_.body_hash && sound({blocks, header_.blocks}, header_.body);
  });
}

IndexEntry Index::entry(uint64_t document) const {
  HLAT_CHECK(document < header_.documents, "document {} of {} in {}", document, header_.documents, path());
  return file_->look([&](const char* data) {
    IndexEntry entry;
    std::memcpy(&entry, data + begin_ + header_.body + document * sizeof entry, sizeof entry);
    return entry;
  });
}

void Index::blocks_of(uint64_t offset, uint64_t bytes, std::vector<IndexBlock>& out) const {
  out.clear();
  file_->look([&](const char* data) {
    const auto* first = reinterpret_cast<const IndexBlock*>(data + begin_ + header_.body + header_.documents * sizeof(IndexEntry));
    const auto* end = first + header_.blocks;
    const auto* block = std::upper_bound(first, end, offset, [](uint64_t at, const IndexBlock& b) { return at < b.text; });
    if (block == first) return;
    for (--block; block != end && block->text < offset + bytes; ++block) out.push_back(*block);
  });
}

void Index::read_block(const IndexBlock& block, std::string& out) const {
  out.resize(block.stored);
  file_->input().read_exactly(begin_ + block.offset, out.data(), out.size());
}

FileReport Index::report(const std::string& data_path) const {
  FileReport report{.path = data_path,
                    .documents = header_.documents,
                    .bytes = header_.bytes,
                    .bad = header_.bad,
                    .examples = {},
                    .empty = header_.empty,
                    .broken = {}};
  const uint64_t tables = header_.documents * sizeof(IndexEntry) + header_.blocks * sizeof(IndexBlock);
  if (tables == header_.body_bytes) return report;
  const auto notes =
      file_->look([&](const char* data) { return std::string(data + begin_ + header_.body + tables, header_.body_bytes - tables); });
  for (std::string_view rest = notes; !rest.empty();) {  // "LINE REASON\n" each
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    BadDocument bad;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), bad.line);
    const size_t digits = static_cast<size_t>(end - line.data());
    if (error == std::errc() && digits < line.size()) bad.reason = line.substr(digits + 1);
    if (header_.broken != 0 && !report.broken)
      report.broken = std::move(bad);
    else
      report.examples.push_back(std::move(bad));
  }
  return report;
}

}  // namespace hlat::reader
