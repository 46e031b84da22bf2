// Writes an index (index.h) while the scan goes on: memory does not grow with the file. Compressed blocks go straight to the
// new file, entries to a second one that is appended at the end. Neither has a name that a reader looks for before
// publish() gives it one; several processes may write the same index at once.
#pragma once

#include <memory>
#include <string>

#include "data/reader/index.h"
#include "data/reader/scan_part.h"

namespace hlat::reader {

class IndexWriter {
 public:
  IndexWriter(std::string path, const IndexKey& key);  // Error when the folder cannot be written
  ~IndexWriter();
  IndexWriter(const IndexWriter&) = delete;
  IndexWriter& operator=(const IndexWriter&) = delete;

  void add(const ScanPart& part);  // parts in order
  void restart();                  // forgets what was added
  void set_layout(Layout layout, uint64_t detail = 0);
  // An index made by another process meanwhile stays; both have the same content.
  void publish();

  uint64_t lines() const { return lines_; }
  const IndexHeader& header() const { return header_; }
  const std::vector<BadDocument>& examples() const { return examples_; }

 private:
  class Output;
  void append_body();

  std::string path_;
  IndexHeader header_;
  uint64_t lines_ = 0;
  uint64_t text_ = 0;  // in blocks so far
  std::vector<BadDocument> examples_;
  std::unique_ptr<Output> main_;
  std::unique_ptr<Output> entries_;
  std::unique_ptr<Output> blocks_;
};

}  // namespace hlat::reader
