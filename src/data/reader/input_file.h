// A data file that is read by position, from many threads. Data is not mapped into memory: a file that is cut short under
// a running job must give an Error, not a signal. Remembers what the file was when opened and notices when it changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace hlat::reader {

// What tells one state of a file from another.
struct FileStamp {
  uint64_t size = 0;
  int64_t changed = 0;  // modification time in ns
  uint64_t inode = 0;
  bool operator==(const FileStamp&) const = default;
};

class InputFile {
 public:
  explicit InputFile(std::string path);  // Error when it is not a regular file that can be read
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  const FileStamp& stamp() const { return stamp_; }
  uint64_t size() const { return stamp_.size; }

  // Reads up to `bytes` at `offset`, fewer only at the file's end; returns how many.
  size_t read(uint64_t offset, char* out, size_t bytes) const;
  void read_exactly(uint64_t offset, char* out, size_t bytes) const;  // Error when the file ends before

  // Error that names the file when it, or the file that has its name now, is not what was opened.
  void check_unchanged() const;
  // A hash of some of its bytes from begin to end: finds changes that leave size and time alone.
  uint64_t sample() const;
  int descriptor() const { return fd_; }
  // Closes the descriptor; from now on only check_unchanged is allowed.
  void release();

 private:
  std::string path_;
  int fd_ = -1;
  FileStamp stamp_;
};

}  // namespace hlat::reader
