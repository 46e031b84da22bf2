// Writes an index (index.h) while the scan goes on: memory does not grow with the file. Compressed blocks go straight to the
// new file, entries to a second one that is appended at the end. Neither has a name that a reader looks for before
// publish() gives it one; several processes may write the same index at once.
#pragma once

#include <memory>
#include <string>

#include "data/reader/index.h"
#include "data/reader/new_file.h"
#include "data/reader/scan_part.h"

namespace hlat::reader {

class IndexWriter {
 public:
  // Error when the folder cannot be written. Without a path the index is made in memory, and image() ends it.
  IndexWriter(std::string path, const IndexKey& key);
  ~IndexWriter();
  IndexWriter(const IndexWriter&) = delete;
  IndexWriter& operator=(const IndexWriter&) = delete;

  void add(const ScanPart& part);  // parts in order
  void restart();                  // forgets what was added
  void set_layout(Layout layout, uint64_t detail = 0);
  // An index made by another process meanwhile stays; both have the same content.
  void publish();
  std::string image();

  uint64_t lines() const { return lines_; }
  const IndexHeader& header() const { return header_; }
  const std::vector<BadDocument>& examples() const { return examples_; }
  bool broken() const { return broken_.has_value(); }

 private:
  void append_body();
  void complete();

  std::string path_;
  IndexHeader header_;
  uint64_t lines_ = 0;
  uint64_t text_ = 0;  // in blocks so far
  std::vector<BadDocument> examples_;
  std::optional<BadDocument> broken_;
  std::unique_ptr<NewFile> main_;
  std::unique_ptr<NewFile> entries_;
  std::unique_ptr<NewFile> blocks_;
};

}  // namespace hlat::reader
