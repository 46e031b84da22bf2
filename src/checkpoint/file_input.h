// A file of a checkpoint that is read. Whatever lies at its path (a folder, a FIFO nobody writes to, a device, a link that leads nowhere)
// is told by name and never waited for: only regular files are read. From any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "checkpoint/index.h"

namespace hlat {

// A file is not there or has another size, as this machine sees it: others may see a network's file system in a later state.
class MissingBytes : public DamagedCheckpoint {
 public:
  using DamagedCheckpoint::DamagedCheckpoint;
};

class FileInput {
 public:
  // MissingBytes: there is none; DamagedCheckpoint: it is no regular file; FaultError or UsageError (fail_storage) when the system does not
  // give it.
  explicit FileInput(const std::filesystem::path& path);
  ~FileInput();
  FileInput(const FileInput&) = delete;
  FileInput& operator=(const FileInput&) = delete;

  uint64_t bytes() const { return bytes_; }                  // when it was opened
  void read(void* to, size_t bytes, uint64_t offset) const;  // MissingBytes: the file ends before

 private:
  std::string path_;
  int fd_ = -1;
  uint64_t bytes_ = 0;
};

}  // namespace hlat
