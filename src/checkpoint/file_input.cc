#include "checkpoint/file_input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"

namespace hlat {

// O_NONBLOCK: a FIFO is opened at once, and then found to be none of ours. It changes nothing for regular files.
FileInput::FileInput(const std::filesystem::path& path) : path_(path.string()) {
  fd_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd_ < 0 && errno == ENOENT) fail<MissingBytes>("{} is missing", path_);
  if (fd_ < 0 && (errno == ELOOP || errno == ENXIO || errno == ENODEV || errno == ENOTDIR)) fail<DamagedCheckpoint>("{} is no file", path_);
  if (fd_ < 0) fail_storage(errno, "cannot open " + path_);
  struct stat s {};
  const int error = fstat(fd_, &s) != 0 ? errno : 0;
  if (error == 0 && S_ISREG(s.st_mode)) {
    bytes_ = static_cast<uint64_t>(s.st_size);
    return;
  }
  close(fd_);
  if (error != 0) fail_storage(error, "cannot ask for the size of " + path_);
  fail<DamagedCheckpoint>("{} is no file", path_);
}

FileInput::~FileInput() { close(fd_); }

void FileInput::read(void* to, size_t bytes, uint64_t offset) const {
  for (size_t done = 0; done < bytes;) {
    const ssize_t n = pread(fd_, static_cast<std::byte*>(to) + done, bytes - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_storage(errno, "cannot read " + path_);
    if (n == 0) fail<MissingBytes>("{} ends at byte {}: it was cut", path_, offset + done);
    done += static_cast<size_t>(n);
  }
}

}  // namespace hlat
