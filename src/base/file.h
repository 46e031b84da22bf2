// Files that are written line by line or record by record and must be on disk when a run is killed. A record is written whole or not at
// all: where the disk is full, the file is cut back to what it was before.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.h"

namespace hlat {

class OutputFile {
 public:
  enum class Mode { append, create_new };  // create_new: an existing file is an error

  OutputFile(std::filesystem::path path, Mode mode);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view record);  // handed to the system on return; FaultError names the file and the reason

 private:
  std::filesystem::path path_;
  int fd_;
};

// Returns when a file's bytes, or the names in a folder, will outlive a crash of the system. FaultError or UsageError: fail_storage.
void sync_to_disk(const std::filesystem::path& file_or_folder);

// Bytes [begin, end) of a file, a block at a time. FaultError when there are fewer.
void append_range(const std::filesystem::path& from, uint64_t begin, uint64_t end, OutputFile& to);

// Cuts a file after its first `bytes`; on disk when this returns.
void cut_file(const std::filesystem::path& file, uint64_t bytes);

// Cuts off the part of a line that a process left at the end of a file when it died. No file: nothing to do.
void cut_to_whole_lines(const std::filesystem::path& file);

// No room on the disk, or in the user's quota.
class DiskFull : public FaultError {
 public:
  using FaultError::FaultError;
};

// Throws for a failed call with this errno: DiskFull, FaultError where the disk or the system failed, UsageError where the path cannot
// work.
[[noreturn]] void fail_storage(int error, const std::string& what);

}  // namespace hlat
