// A data file that is read by position, from many threads. Data is not mapped into memory: a file that is cut short under
// a running job must give an Error, not a signal. Remembers what the file was when opened and notices when its content changes; a file
// that was only touched, or replaced by a copy of itself, is the same. Its descriptor is one of OpenFiles.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "data/reader/open_files.h"

struct stat;

namespace hlat::reader {

// What tells one state of a file from another.
struct FileStamp {
  uint64_t size = 0;
  int64_t changed = 0;         // modification time in ns
  uint64_t inode = 0;          // mixed with the device
  int64_t status_changed = 0;  // in ns; nobody can set it back, but it also moves with names and permissions
  static FileStamp of(const struct stat& s);
  // Nothing was written between the two; their names and permissions may differ.
  bool same_state(const FileStamp& other) const { return size == other.size && changed == other.changed && inode == other.inode; }
  bool operator==(const FileStamp&) const = default;
};

class InputFile {
 public:
  // Opens it; an Error when it is not a regular file that can be read. Without `files` the descriptor is its own.
  explicit InputFile(std::string path, std::shared_ptr<OpenFiles> files = nullptr);
  // A file whose state is known; opened when it is first read.
  InputFile(std::string path, const FileStamp& stamp, uint64_t sample, std::shared_ptr<OpenFiles> files);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  FileStamp stamp() const;
  uint64_t size() const { return size_; }
  const std::shared_ptr<OpenFiles>& files() const { return files_; }

  // Reads up to `bytes` at `offset`, fewer only at the file's end; returns how many.
  size_t read(uint64_t offset, char* out, size_t bytes) const;
  void read_exactly(uint64_t offset, char* out, size_t bytes) const;  // Error when the file ends before

  // Error that names the file when it, or the file that has its name now, does not have the content that was opened. The content is
  // sampled when the file was touched. Returns how often that was.
  uint32_t check_unchanged() const;
  // A hash of some of its bytes from begin to end: finds changes that leave size and time alone.
  uint64_t sample() const;
  OpenFiles::Handle handle() const;
  void release() const { files_->forget(id_); }  // closes it until it is read again

 private:
  struct Watch {
    std::mutex mutex;
    FileStamp stamp;                 // under mutex
    std::optional<uint64_t> sample;  // under mutex
    std::atomic<uint32_t> touched{0};
  };
  void accept(const FileStamp& now, const char* problem) const;

  std::string path_;
  std::shared_ptr<OpenFiles> files_;
  uint64_t id_;
  uint64_t size_ = 0;
  std::unique_ptr<Watch> watch_;
};

}  // namespace hlat::reader
