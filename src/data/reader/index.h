// The index of a data file: where each document lies, how long it is, and the hash of its content. One file:
//   header | blocks of compressed text, where the data file cannot be read at random | entries | block table | bad examples
// Written under a temporary name and renamed (index_writer.h), so it is there whole or not at all. It belongs to one state of
// the data file (size, time, sampled bytes) and one way to read it; an index that does not match, or whose checksums are wrong,
// does not exist. Mapped into memory: 24 bytes a document, more than memory has for a large corpus. The indices of many small files
// lie one behind the other in one file (index_pack.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/reader/document_file.h"
#include "data/reader/input_file.h"

namespace hlat::reader {

// Documents above this are bad: texts are handed out whole. A .txt file has no such limit.
constexpr uint64_t kMaxDocument = uint64_t{1} << 30;

// How a document is found from its entry.
enum class Layout : uint32_t {
  json_lines = 1,  // the entry is a line of the data file
  in_place = 2,    // the entry is the text itself, in the data file
  blocks = 3,      // the entry is a range of the text in the index's own blocks
  whole_file = 4,  // the data file is the document
  tokens = 5,      // the entry is token ids in the data file; `detail` is their type
};

struct IndexEntry {
  uint64_t offset = 0;
  uint32_t stored = 0;  // bytes at the offset
  uint32_t length = 0;  // bytes of text, or tokens
  uint64_t hash = 0;
};
static_assert(sizeof(IndexEntry) == 24);

// The most text of a block. 128 KiB would take 8 % less disk, and four times as long to read a short text.
constexpr size_t kBlockText = 32 << 10;

struct IndexBlock {
  uint64_t text = 0;    // where its text begins, counted over all blocks
  uint64_t offset = 0;  // of its compressed bytes in the index file
  uint32_t stored = 0;
  uint32_t length = 0;  // of its text
};
static_assert(sizeof(IndexBlock) == 24);

// Which state of which data, read how.
struct IndexKey {
  uint64_t settings = 0;  // hash of format and field
  uint64_t size = 0;
  uint64_t changed = 0;
  uint64_t sample = 0;
  bool operator==(const IndexKey&) const = default;
};

struct IndexHeader {
  char magic[8] = {'h', 'l', 'a', 't', 'i', 'd', 'x', '\n'};
  uint32_t version = 2;
  Layout layout = Layout::json_lines;
  IndexKey key;
  uint64_t detail = 0;
  uint64_t documents = 0;
  uint64_t bytes = 0;
  uint64_t bad = 0;
  uint64_t empty = 0;   // documents without text
  uint64_t broken = 0;  // 1: the data file cannot be read to its end; the first example says why
  uint64_t digest = 0;  // of all documents' hashes in order
  uint64_t blocks = 0;
  uint64_t body = 0;  // where entries, block table and examples begin
  uint64_t body_bytes = 0;
  uint64_t body_hash = 0;
  uint64_t header_hash = 0;  // of all above
};
static_assert(sizeof(IndexHeader) == 144);
uint64_t header_hash(const IndexHeader& header);

// A file with one index or many, mapped for as long as it is open where OpenFiles has a mapping left, else for each look.
class IndexFile {
 public:
  explicit IndexFile(InputFile file);  // Error when it cannot be mapped
  ~IndexFile();
  IndexFile(const IndexFile&) = delete;
  IndexFile& operator=(const IndexFile&) = delete;

  const InputFile& input() const { return file_; }
  // Calls use(begin of the file in memory) and returns what it returns.
  template <class Use>
  auto look(const Use& use) const {
    if (kept_) return use(kept_->data);
    const Map map(file_);
    return use(map.data);
  }

 private:
  struct Map {
    explicit Map(const InputFile& file);
    ~Map();
    Map(const Map&) = delete;
    Map& operator=(const Map&) = delete;
    const char* data = nullptr;
    size_t bytes = 0;
  };
  InputFile file_;
  std::unique_ptr<const Map> kept_;
};

class Index {
 public:
  // Nothing when there is no file, or one that does not belong to the key or is damaged. Of the options only `verified`, `work` and
  // `files` count.
  static std::unique_ptr<Index> load(const std::string& path, const IndexKey& key, const ReaderOptions& options = {});
  // The same for `bytes` from `begin` of a file.
  static std::unique_ptr<Index> part_of(std::shared_ptr<const IndexFile> file, uint64_t begin, uint64_t bytes, const IndexKey& key,
                                        const ReaderOptions& options);

  const IndexHeader& header() const { return header_; }
  IndexEntry entry(uint64_t document) const;
  // The blocks that hold `bytes` of text from `offset` on, in order; fewer when the index has no more.
  void blocks_of(uint64_t offset, uint64_t bytes, std::vector<IndexBlock>& out) const;
  void read_block(const IndexBlock& block, std::string& out) const;  // its compressed bytes
  const std::string& path() const { return file_->input().path(); }
  FileReport report(const std::string& data_path) const;

 private:
  Index(std::shared_ptr<const IndexFile> file, uint64_t begin) : file_(std::move(file)), begin_(begin) {}
  bool attach(uint64_t bytes, const IndexKey& key, const ReaderOptions& options);

  std::shared_ptr<const IndexFile> file_;
  uint64_t begin_;
  IndexHeader header_;
};

}  // namespace hlat::reader
