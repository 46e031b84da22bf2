#include "checkpoint/hf/new_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "base/file.h"

namespace hlat {
namespace fs = std::filesystem;

NewFolder::NewFolder(fs::path path) : path_(std::move(path)) {
  if (!path_.has_filename()) path_ = path_.parent_path();  // "out/"
  std::error_code error;
  if (fs::exists(fs::symlink_status(path_, error))) fail<UsageError>("{} exists already; give a folder that does not", path_.string());
  error.clear();
  filling_ = fmt::format("{}.{}.tmp", path_.string(), getpid());
  if (path_.has_parent_path()) fs::create_directories(path_.parent_path(), error);
  if (!error && !fs::create_directory(filling_, error) && !error) error = std::make_error_code(std::errc::file_exists);
  if (error) fail_storage(error.value(), "cannot create " + filling_.string());
}

NewFolder::~NewFolder() {
  std::error_code ignored;
  if (!filling_.empty()) fs::remove_all(filling_, ignored);
}

void NewFolder::commit() {
  sync_to_disk(filling_);
  if (rename(filling_.c_str(), path_.c_str()) != 0)
    fail_storage(errno, fmt::format("cannot rename {} to {}", filling_.string(), path_.string()));
  filling_.clear();
  sync_to_disk(path_.has_parent_path() ? path_.parent_path() : fs::path("."));
}

NewFile::NewFile(fs::path path) : path_(std::move(path)), fd_(open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
  if (fd_ < 0) fail_storage(errno, "cannot create " + path_.string());
}

NewFile::~NewFile() {
  if (fd_ >= 0) close(fd_);
}

void NewFile::write(const void* data, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t n = ::write(fd_, static_cast<const std::byte*>(data) + done, bytes - done);
    if (n < 0 && errno != EINTR) fail_storage(errno, "cannot write " + path_.string());
    if (n > 0) done += static_cast<size_t>(n);
  }
}

void NewFile::finish() {
  const int error = fsync(fd_) != 0 ? errno : 0;
  if (close(fd_) != 0 || error != 0) {
    fd_ = -1;
    fail_storage(error != 0 ? error : errno, "cannot write " + path_.string());
  }
  fd_ = -1;
}

}  // namespace hlat
