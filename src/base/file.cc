#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/error.h"

namespace hlat {

namespace {

bool is_full(int error) { return error == ENOSPC || error == EDQUOT; }

}  // namespace

void fail_storage(int error, const std::string& what) {
  const std::string text = fmt::format("{}: {}", what, std::strerror(error));
  if (is_full(error)) throw DiskFull(text);
  switch (error) {
    case EFBIG:
    case EIO:
    case ESTALE:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOTCONN:
    case EREMOTEIO:
    case ETIMEDOUT: throw FaultError(text);
    default: throw UsageError(text);
  }
}

OutputFile::OutputFile(std::filesystem::path path, Mode mode)
    : path_(std::move(path)), fd_(open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (mode == Mode::append ? O_APPEND : O_EXCL), 0666)) {
  if (fd_ < 0) fail_storage(errno, fmt::format("cannot open {} for writing", path_.string()));
}

OutputFile::~OutputFile() { close(fd_); }

void OutputFile::write(std::string_view record) {
  struct stat before {};
  const bool known = fstat(fd_, &before) == 0 && S_ISREG(before.st_mode);
  for (size_t done = 0; done < record.size();) {
    const ssize_t n = ::write(fd_, record.data() + done, record.size() - done);
    if (n >= 0) {
      done += static_cast<size_t>(n);
      continue;
    }
    if (errno == EINTR) continue;
    const int error = errno;
    const bool cut = done > 0 && known && ftruncate(fd_, before.st_size) == 0;
    const std::string text =
        fmt::format("cannot write {}: {}{}", path_.string(), std::strerror(error), cut ? "; it ends with its last whole record" : "");
    if (is_full(error)) throw DiskFull(text);
    throw FaultError(text);
  }
}

void sync_to_disk(const std::filesystem::path& file_or_folder) {
  const int fd = open(file_or_folder.c_str(), O_RDONLY | O_CLOEXEC);
  const int error = fd < 0 || fsync(fd) != 0 ? errno : 0;
  if (fd >= 0) close(fd);
  if (error != 0 && error != EINVAL)  // file systems without it
    fail_storage(error, fmt::format("cannot bring {} to disk", file_or_folder.string()));
}

void append_range(const std::filesystem::path& from, uint64_t begin, uint64_t end, OutputFile& to) {
  constexpr uint64_t kBlock = 1 << 20;
  std::ifstream in(from, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(begin));
  std::string block;
  for (; begin < end; begin += block.size()) {
    block.resize(std::min(kBlock, end - begin));
    if (!in.read(block.data(), static_cast<std::streamsize>(block.size()))) fail<FaultError>("cannot read {}", from.string());
    to.write(block);
  }
}

void cut_file(const std::filesystem::path& file, uint64_t bytes) {
  std::error_code error;
  std::filesystem::resize_file(file, bytes, error);
  if (error) fail_storage(error.value(), fmt::format("cannot cut {} to {} bytes", file.string(), bytes));
  sync_to_disk(file);
}

void cut_to_whole_lines(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return;
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const size_t whole = text.rfind('\n') + 1;  // npos + 1 is 0
  if (whole == text.size()) return;
  std::error_code error;
  std::filesystem::resize_file(file, whole, error);
  if (error) fail_storage(error.value(), fmt::format("cannot cut {} back to whole lines", file.string()));
}

}  // namespace hlat
