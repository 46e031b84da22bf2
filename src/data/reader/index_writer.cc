#include "data/reader/index_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "data/reader/content_hash.h"

namespace hlat::reader {

// A new file with a name of its own that is removed again unless it is published.
class IndexWriter::Output {
 public:
  explicit Output(const std::string& place) : path_(place + ".XXXXXX"), fd_(::mkostemp(path_.data(), O_CLOEXEC)) {
    if (fd_ < 0) fail("cannot write {}: {}", place, std::strerror(errno));
  }
  ~Output() {
    ::close(fd_);
    if (!published_) ::unlink(path_.c_str());
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void write(std::string_view data) {
    bytes_ += data.size();
    if (buffer_.size() + data.size() > kHashPiece) flush();
    if (data.size() > kHashPiece) return put(data, written_);
    buffer_ += data;
  }
  void write_at(uint64_t offset, std::string_view data) { put_at(data, offset); }
  void flush() {
    put(buffer_, written_);
    buffer_.clear();
  }
  void publish(const std::string& name) {
    ::fchmod(fd_, 0644);
    if (::fsync(fd_) != 0 || ::rename(path_.c_str(), name.c_str()) != 0) fail("cannot write {}: {}", name, std::strerror(errno));
    published_ = true;
  }
  size_t read(uint64_t offset, char* out, size_t bytes) const {
    const ssize_t n = ::pread(fd_, out, bytes, static_cast<off_t>(offset));
    if (n < 0) fail("cannot read {}: {}", path_, std::strerror(errno));
    return static_cast<size_t>(n);
  }
  uint64_t bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

 private:
  void put(std::string_view data, uint64_t& at) {
    put_at(data, at);
    at += data.size();
  }
  void put_at(std::string_view data, uint64_t offset) {
    while (!data.empty()) {
      const ssize_t n = ::pwrite(fd_, data.data(), data.size(), static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) fail("cannot write {}: {}", path_, std::strerror(errno));
      data.remove_prefix(static_cast<size_t>(n));
      offset += static_cast<uint64_t>(n);
    }
  }

  std::string path_;
  int fd_ = -1;
  std::string buffer_;
  uint64_t bytes_ = 0;
  uint64_t written_ = 0;
  bool published_ = false;
};

namespace {

template <class T>
std::string_view bytes_of(const std::vector<T>& items) {
  return {reinterpret_cast<const char*>(items.data()), items.size() * sizeof(T)};
}

}  // namespace

IndexWriter::IndexWriter(std::string path, const IndexKey& key) : path_(std::move(path)) {
  header_.key = key;
  restart();
}

void IndexWriter::restart() {
  const IndexKey key = header_.key;
  header_ = IndexHeader();
  header_.key = key;
  header_.digest = kHashStart;
  lines_ = text_ = 0;
  examples_.clear();
  main_ = std::make_unique<Output>(path_);
  entries_ = std::make_unique<Output>(path_);
  blocks_ = std::make_unique<Output>(path_);
  main_->write(std::string(sizeof header_, '\0'));  // a file without its header is not an index
}

IndexWriter::~IndexWriter() = default;

void IndexWriter::set_layout(Layout layout, uint64_t detail) {
  header_.layout = layout;
  header_.detail = detail;
}

void IndexWriter::add(const ScanPart& part) {
  std::vector<IndexEntry> entries = part.entries;
  for (IndexEntry& e : entries) {
    header_.digest = hash_pair(header_.digest, e.hash);
    if (header_.layout == Layout::blocks) e.offset += text_;
  }
  std::vector<IndexBlock> blocks = part.blocks;
  for (IndexBlock& b : blocks) {
    b.text += text_;
    b.offset += main_->bytes();
  }
  if (!blocks.empty()) text_ = blocks.back().text + blocks.back().length;
  entries_->write(bytes_of(entries));
  blocks_->write(bytes_of(blocks));
  main_->write(part.block_data);
  header_.documents += entries.size();
  header_.blocks += blocks.size();
  header_.bytes += part.bytes;
  header_.bad += part.bad;
  for (const BadDocument& bad : part.examples)
    if (examples_.size() < kExamples) examples_.push_back({.line = lines_ + bad.line, .reason = bad.reason});
  lines_ += part.lines;
}

// Entries, block table and examples behind the blocks; hashes them on the way.
void IndexWriter::append_body() {
  main_->write(std::string((8 - main_->bytes() % 8) % 8, '\0'));
  header_.body = main_->bytes();
  std::string examples;
  for (const BadDocument& bad : examples_) examples += fmt::format("{} {}\n", bad.line, bad.reason);

  std::string piece;
  uint64_t hash = kHashStart;
  const auto take = [&](std::string_view data) {
    while (!data.empty()) {
      const std::string_view now = data.substr(0, kHashPiece - piece.size());
      piece += now;
      data.remove_prefix(now.size());
      if (piece.size() < kHashPiece) return;
      hash = hash_piece(hash, piece);
      main_->write(piece);
      piece.clear();
    }
  };
  std::vector<char> buffer(kHashPiece);
  for (Output* table : {entries_.get(), blocks_.get()}) {
    table->flush();
    for (uint64_t at = 0; at < table->bytes();) {
      const size_t n = table->read(at, buffer.data(), buffer.size());
      if (n == 0) fail("cannot read {} back", table->path());
      take({buffer.data(), n});
      at += n;
    }
  }
  take(examples);
  main_->write(piece);
  header_.body_bytes = main_->bytes() - header_.body;
  header_.body_hash = piece.empty() && header_.body_bytes > 0 ? hash : hash_piece(hash, piece);
}

void IndexWriter::publish() {
  append_body();
  header_.header_hash = header_hash(header_);
  main_->flush();
  main_->write_at(0, {reinterpret_cast<const char*>(&header_), sizeof header_});
  // A reader on another machine may hold the file of this name open, and a shared file system may lose what is renamed over.
  if (!Index::load(path_, header_.key)) main_->publish(path_);
}

}  // namespace hlat::reader
