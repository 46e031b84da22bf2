// What the fuzz targets of the readers share: bytes become a file, the file is opened, every document is read. An Error is a good
// answer; anything else that is thrown, and a document that is not as long as the index says, is a bug.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "data/reader/document_file.h"

namespace hlat::fuzz {

// A folder in memory where there is one; gone at the end.
class Folder {
 public:
  Folder() {
    const std::filesystem::path memory = "/dev/shm";
    path_ = ((std::filesystem::exists(memory) ? memory : std::filesystem::temp_directory_path()) / "hlat_fuzz_XXXXXX").string();
    if (!mkdtemp(path_.data())) std::abort();
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline const std::string& folder() {
  static const Folder folder;
  return folder.path();
}

inline std::string write_file(const std::string& name, std::string_view data) {
  const std::string path = folder() + "/" + name;
  std::ofstream(path, std::ios::binary | std::ios::trunc).write(data.data(), static_cast<std::streamsize>(data.size()));
  return path;
}

inline void read_everything(const DocumentFile& file) {
  std::string text;
  std::vector<int32_t> tokens;
  for (uint64_t d = 0; d < file.documents(); ++d) {
    try {
      if (file.tokenized())
        file.tokens(d, tokens);
      else
        file.text(d, text);
    } catch (const Error&) {
      continue;
    }
    if (file.length(d) != (file.tokenized() ? tokens.size() : text.size())) std::abort();
  }
}

inline void open_and_read(const std::string& path, const std::string& separator = "") {
  try {
    read_everything(
        *open_documents(path, {.cache_dir = folder() + "/cache", .bad_share = 1.0, .separator = separator, .allow_broken = true}));
  } catch (const Error&) {
  }
  std::filesystem::remove_all(folder() + "/cache");
}

}  // namespace hlat::fuzz
