#include "data/reader/new_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/file.h"
#include "data/reader/content_hash.h"

namespace hlat::reader {

NewFile::NewFile(const std::string& place) {
  if (place.empty()) return;
  path_ = place + ".XXXXXX";
  fd_ = ::mkostemp(path_.data(), O_CLOEXEC);
  if (fd_ < 0) fail_storage(errno, "cannot write " + place);
}

NewFile::~NewFile() {
  if (in_memory()) return;
  ::close(fd_);
  if (!published_) ::unlink(path_.c_str());
}

void NewFile::write(std::string_view data) {
  bytes_ += data.size();
  if (in_memory()) {
    buffer_ += data;
    return;
  }
  if (buffer_.size() + data.size() > kHashPiece) flush();
  if (data.size() > kHashPiece) {
    put_at(data, written_);
    written_ += data.size();
  } else {
    buffer_ += data;
  }
}

void NewFile::write_at(uint64_t offset, std::string_view data) {
  if (in_memory())
    std::memcpy(buffer_.data() + offset, data.data(), data.size());
  else
    put_at(data, offset);
}

void NewFile::flush() {
  if (in_memory()) return;
  put_at(buffer_, written_);
  written_ += buffer_.size();
  buffer_.clear();
}

void NewFile::publish(const std::string& name) {
  flush();
  ::fchmod(fd_, 0644);
  if (::fsync(fd_) != 0 || ::rename(path_.c_str(), name.c_str()) != 0) fail_storage(errno, "cannot write " + name);
  published_ = true;
}

size_t NewFile::read(uint64_t offset, char* out, size_t bytes) const {
  if (in_memory()) return buffer_.copy(out, bytes, offset);
  const ssize_t n = ::pread(fd_, out, bytes, static_cast<off_t>(offset));
  if (n < 0) fail_storage(errno, "cannot read " + path_);
  return static_cast<size_t>(n);
}

std::string NewFile::take() { return std::move(buffer_); }

void NewFile::put_at(std::string_view data, uint64_t offset) const {
  while (!data.empty()) {
    const ssize_t n = ::pwrite(fd_, data.data(), data.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail_storage(n == 0 ? ENOSPC : errno, "cannot write " + path_);
    data.remove_prefix(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
}

}  // namespace hlat::reader
