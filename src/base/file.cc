#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/error.h"

namespace hlat {

void fail_storage(int error, const std::string& what) {
  const std::string text = fmt::format("{}: {}", what, std::strerror(error));
  switch (error) {
    case ENOSPC:
    case EDQUOT: throw DiskFull(text);
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
    fail<FaultError>("cannot write {}: {}{}", path_.string(), std::strerror(error), cut ? "; it ends with its last whole record" : "");
  }
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
