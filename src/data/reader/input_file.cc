#include "data/reader/input_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/error.h"
#include "data/reader/content_hash.h"

namespace hlat::reader {
namespace {

FileStamp stamp_of(const struct stat& s) {
  return {.size = static_cast<uint64_t>(s.st_size),
          .changed = int64_t{s.st_mtim.tv_sec} * 1'000'000'000 + s.st_mtim.tv_nsec,
          .inode = static_cast<uint64_t>(s.st_ino)};
}

// A source may have thousands of files, and the usual limit on open ones is 1024 of many more that are allowed.
bool raise_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return false;
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

int open_for_reading(const std::string& path) {
  // O_NONBLOCK: opening a pipe must not wait for a writer.
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0 && errno == EMFILE && raise_file_limit()) fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) fail("cannot open {}: {}", path, std::strerror(errno));
  return fd;
}

}  // namespace

InputFile::InputFile(std::string path) : path_(std::move(path)), fd_(open_for_reading(path_)) {
  struct stat s {};
  if (::fstat(fd_, &s) == 0 && S_ISREG(s.st_mode)) {
    stamp_ = stamp_of(s);
    return;
  }
  release();
  fail("cannot read {}: not a regular file", path_);
}

InputFile::~InputFile() { release(); }

InputFile::InputFile(InputFile&& other) noexcept : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), stamp_(other.stamp_) {}

void InputFile::release() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

size_t InputFile::read(uint64_t offset, char* out, size_t bytes) const {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t n = ::pread(fd_, out + done, bytes - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("cannot read {}: {}", path_, std::strerror(errno));
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

void InputFile::read_exactly(uint64_t offset, char* out, size_t bytes) const {
  const size_t n = read(offset, out, bytes);
  if (n == bytes) return;
  check_unchanged();
  fail("cannot read {}: it ends at byte {}, before byte {}", path_, offset + n, offset + bytes);
}

void InputFile::check_unchanged() const {
  struct stat s {};
  if (fd_ >= 0 && ::fstat(fd_, &s) == 0 && stamp_of(s) != stamp_) fail("{} changed while it was in use", path_);
  if (::stat(path_.c_str(), &s) != 0) fail("{} is gone while it was in use: {}", path_, std::strerror(errno));
  if (stamp_of(s) != stamp_) fail("{} was changed or replaced while it was in use", path_);
}

uint64_t InputFile::sample() const {
  constexpr uint64_t kPart = 16 << 10;
  constexpr uint64_t kParts = 8;
  std::vector<char> buffer(kPart);
  uint64_t hash = hash_pair(kHashStart, size());
  for (uint64_t i = 0; i < kParts; ++i) {
    const uint64_t last = size() > kPart ? size() - kPart : 0;
    const size_t n = read(last / (kParts - 1) * i + (i + 1 == kParts ? last % (kParts - 1) : 0), buffer.data(), buffer.size());
    hash = hash_piece(hash, {buffer.data(), n});
    if (last == 0) break;
  }
  return hash;
}

}  // namespace hlat::reader
