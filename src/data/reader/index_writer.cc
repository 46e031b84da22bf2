#include "data/reader/index_writer.h"

#include <algorithm>

#include "base/error.h"
#include "data/reader/content_hash.h"

namespace hlat::reader {

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
  broken_.reset();
  main_ = std::make_unique<NewFile>(path_);
  entries_ = std::make_unique<NewFile>(path_);
  blocks_ = std::make_unique<NewFile>(path_);
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
  header_.empty += part.empty;
  if (part.broken && !broken_) broken_ = BadDocument{.line = lines_ + part.broken->line, .reason = part.broken->reason};
  for (const BadDocument& bad : part.examples)
    if (examples_.size() < kExamples) examples_.push_back({.line = lines_ + bad.line, .reason = bad.reason});
  lines_ += part.lines;
}

// Entries, block table and examples behind the blocks; hashes them on the way.
void IndexWriter::append_body() {
  main_->write(std::string((8 - main_->bytes() % 8) % 8, '\0'));
  header_.body = main_->bytes();
  std::string examples = broken_ ? fmt::format("{} {}\n", broken_->line, broken_->reason) : "";
  header_.broken = broken_ ? 1 : 0;
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
  std::vector<char> buffer(std::min<uint64_t>(kHashPiece, std::max(entries_->bytes(), blocks_->bytes())));
  for (NewFile* table : {entries_.get(), blocks_.get()}) {
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

void IndexWriter::complete() {
  append_body();
  header_.header_hash = header_hash(header_);
  main_->flush();
  main_->write_at(0, {reinterpret_cast<const char*>(&header_), sizeof header_});
}

void IndexWriter::publish() {
  complete();
  // A reader on another machine may hold the file of this name open, and a shared file system may lose what is renamed over.
  if (!Index::load(path_, header_.key)) main_->publish(path_);
}

std::string IndexWriter::image() {
  complete();
  return main_->take();
}

}  // namespace hlat::reader
