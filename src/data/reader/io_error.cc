#include "data/reader/io_error.h"

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace hlat::reader {

void fail_io(int error, const std::string& what) {
  const std::string text = fmt::format("{}: {}", what, std::strerror(error));
  switch (error) {
    case ENOENT:
    case EACCES:
    case EPERM:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
    case EROFS: throw UsageError(text);
    case EIO:
    case ENOSPC:
    case EDQUOT:
    case ESTALE:
    case ETIMEDOUT:
    case ENOTCONN:
    case EREMOTEIO: throw FaultError(text);
    default: throw Error(text);
  }
}

}  // namespace hlat::reader
