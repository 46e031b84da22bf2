// A file under a name of its own that becomes the file of another name when it is whole, and is removed again otherwise. Or, without a
// place, the same bytes in memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hlat::reader {

class NewFile {
 public:
  explicit NewFile(const std::string& place);  // will be published there; empty: in memory. Error when the folder cannot be written
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(std::string_view data);
  void write_at(uint64_t offset, std::string_view data);  // over bytes that flush() has written
  void flush();
  void publish(const std::string& name);
  size_t read(uint64_t offset, char* out, size_t bytes) const;  // what was flushed
  uint64_t bytes() const { return bytes_; }
  const std::string& path() const { return path_; }
  std::string take();  // the bytes of one in memory

 private:
  bool in_memory() const { return fd_ < 0; }
  void put_at(std::string_view data, uint64_t offset) const;

  std::string path_;
  int fd_ = -1;
  std::string buffer_;
  uint64_t bytes_ = 0;
  uint64_t written_ = 0;
  bool published_ = false;
};

}  // namespace hlat::reader
