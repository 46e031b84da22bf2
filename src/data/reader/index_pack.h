// The indices of many small files in one file, so that a folder of 100,000 files gets one more and not 100,000:
//   header | an index (index.h) of each file, at multiples of 8 | for each: where it lies and the file's stamp | the files' names
// Names are relative to the folder that all the files lie below. Written under a temporary name and renamed, as an index is.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "data/reader/index.h"
#include "data/reader/new_file.h"

namespace hlat::reader {

struct PackEntry {
  uint64_t begin = 0, bytes = 0;  // of the index
  FileStamp stamp;                // of the data file
  uint64_t name_bytes = 0;
};
static_assert(sizeof(PackEntry) == 56);

class IndexPack {
 public:
  // Nothing when there is no such file, or a damaged one.
  static std::unique_ptr<IndexPack> load(const std::string& path, const std::shared_ptr<OpenFiles>& files);

  const PackEntry* find(const std::string& name) const;
  const std::shared_ptr<const IndexFile>& file() const { return file_; }
  std::string image(const PackEntry& entry) const;  // the bytes of an index
  IndexKey key(const PackEntry& entry) const;       // that the index was made for

 private:
  std::shared_ptr<const IndexFile> file_;
  std::unordered_map<std::string, PackEntry> entries_;
};

class IndexPackWriter {
 public:
  explicit IndexPackWriter(std::string path);
  void add(const std::string& name, const FileStamp& stamp, std::string_view image);
  void publish();

 private:
  std::string path_;
  NewFile out_;
  std::vector<PackEntry> entries_;
  std::string names_;
};

}  // namespace hlat::reader
