// A folder that is there when all of it is: it is filled under another name next to its own, and renamed when its files are on disk. What
// is not finished is removed. An existing folder is never touched.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace hlat {

class NewFolder {
 public:
  explicit NewFolder(std::filesystem::path path);  // UsageError when it exists; folders above it are made
  ~NewFolder();                                    // removes what was not committed
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  const std::filesystem::path& filling() const { return filling_; }  // where its files go until then
  void commit();                                                     // after fsync of its files and of the folders in it

 private:
  std::filesystem::path path_, filling_;
};

// A file written from its beginning to its end.
class NewFile {
 public:
  explicit NewFile(std::filesystem::path path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(const void* data, size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  void finish();  // fsync

 private:
  std::filesystem::path path_;
  int fd_;
};

}  // namespace hlat
