// What all document files share: the index, the report, and the watch over the data file. A subclass fetches a document by
// its entry; what it fetched is held against the hash in the index, so a text is never handed out that the scan did not see.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "data/reader/document_file.h"
#include "data/reader/index.h"
#include "data/reader/input_file.h"

namespace hlat::reader {

class IndexedFile : public DocumentFile {
 public:
  IndexedFile(InputFile file, std::unique_ptr<Index> index);

  const FileReport& report() const override { return report_; }
  uint64_t hash(uint64_t document) const override { return entry(document).hash; }
  uint64_t length(uint64_t document) const override { return entry(document).length; }
  uint64_t fingerprint() const override { return index_->header().digest; }
  bool tokenized() const override { return false; }
  void text(uint64_t document, std::string& out) const override;
  void tokens(uint64_t document, std::vector<int32_t>& out) const override;
  void text_part(uint64_t document, uint64_t begin, uint64_t bytes, std::string& out) const override;

 protected:
  virtual void fetch(const IndexEntry& entry, std::string& out) const = 0;

  const InputFile& file() const { return file_; }
  const Index& index() const { return *index_; }
  IndexEntry entry(uint64_t document) const { return index_->entry(document); }
  // Looks at the data file once in a while; before every read.
  void watch() const;
  [[noreturn]] void fail_changed() const;
  // Before memory is taken for them: are these bytes of the data file there?
  void check_range(uint64_t offset, uint64_t bytes) const {
    if (offset > file_.size() || bytes > file_.size() - offset) fail_changed();
  }
  // text_part of a text that stands in the data file as it is. A part has no hash of its own: the file is looked at each time, and
  // the whole text read once more when it was touched.
  void part_of_file(const IndexEntry& entry, uint64_t length, uint64_t begin, uint64_t bytes, std::string& out) const;
  // Once for each touch of the file that a thread meets: an Error when what `hash_now` finds is not the document of the index.
  void check_touched(const IndexEntry& entry, uint32_t touched, const std::function<uint64_t()>& hash_now) const;

 private:
  uint64_t hash_in_file(uint64_t offset, uint64_t length) const;

  InputFile file_;
  std::unique_ptr<Index> index_;
  FileReport report_;
  mutable std::atomic<uint32_t> reads_{0};
};

// The kind of file that an index describes.
std::unique_ptr<DocumentFile> make_json_lines(InputFile file, std::unique_ptr<Index> index, const std::string& field);
std::unique_ptr<DocumentFile> make_in_place(InputFile file, std::unique_ptr<Index> index);
std::unique_ptr<DocumentFile> make_token_file(InputFile file, std::unique_ptr<Index> index);
std::unique_ptr<DocumentFile> make_blocks(InputFile file, std::unique_ptr<Index> index);
std::unique_ptr<DocumentFile> make_whole_file(InputFile file, std::unique_ptr<Index> index);

}  // namespace hlat::reader
