#include "data/reader/input_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "data/reader/content_hash.h"

namespace hlat::reader {
namespace {

int64_t nanoseconds(const timespec& t) { return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec; }

size_t read_at(const OpenFiles::Descriptor& open, const std::string& path, uint64_t offset, char* out, size_t bytes) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t n = ::pread(open.fd(), out + done, bytes - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_storage(errno, fmt::format("cannot read {} at byte {}", path, offset + done));
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

uint64_t sample_of(const OpenFiles::Descriptor& open, const std::string& path, uint64_t size) {
  constexpr uint64_t kPart = 16 << 10;
  constexpr uint64_t kParts = 8;
  std::vector<char> buffer(std::min(kPart, size));
  uint64_t hash = hash_pair(kHashStart, size);
  for (uint64_t i = 0; i < kParts; ++i) {
    const uint64_t last = size > kPart ? size - kPart : 0;
    const size_t n =
        read_at(open, path, last / (kParts - 1) * i + (i + 1 == kParts ? last % (kParts - 1) : 0), buffer.data(), buffer.size());
    hash = hash_piece(hash, {buffer.data(), n});
    if (last == 0) break;
  }
  return hash;
}

}  // namespace

FileStamp FileStamp::of(const struct stat& s) {
  return {.size = static_cast<uint64_t>(s.st_size),
          .changed = nanoseconds(s.st_mtim),
          .inode = hash_pair(static_cast<uint64_t>(s.st_dev), static_cast<uint64_t>(s.st_ino)),
          .status_changed = nanoseconds(s.st_ctim)};
}

InputFile::InputFile(std::string path, std::shared_ptr<OpenFiles> files)
    : path_(std::move(path)),
      files_(files ? std::move(files) : std::make_shared<OpenFiles>(1, 1)),
      id_(files_->new_id()),
      watch_(std::make_unique<Watch>()) {
  const OpenFiles::Handle open = files_->open(path_);
  struct stat s {};
  if (::fstat(open->fd(), &s) != 0 || !S_ISREG(s.st_mode)) fail<UsageError>("cannot read {}: not a regular file", path_);
  watch_->stamp = FileStamp::of(s);
  size_ = watch_->stamp.size;
  files_->keep(id_, open);
}

InputFile::InputFile(std::string path, const FileStamp& stamp, uint64_t sample, std::shared_ptr<OpenFiles> files)
    : path_(std::move(path)), files_(std::move(files)), id_(files_->new_id()), size_(stamp.size), watch_(std::make_unique<Watch>()) {
  watch_->stamp = stamp;
  watch_->sample = sample;
}

InputFile::~InputFile() {
  if (id_ != 0) release();
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)),
      files_(std::move(other.files_)),
      id_(std::exchange(other.id_, 0)),
      size_(other.size_),
      watch_(std::move(other.watch_)) {}

FileStamp InputFile::stamp() const {
  const std::lock_guard lock(watch_->mutex);
  return watch_->stamp;
}

OpenFiles::Handle InputFile::handle() const {
  if (OpenFiles::Handle open = files_->find(id_)) return open;
  OpenFiles::Handle open = files_->open(path_);
  struct stat s {};
  if (::fstat(open->fd(), &s) != 0) fail_storage(errno, "cannot read " + path_);
  accept(FileStamp::of(s), "was changed or replaced while it was in use");
  files_->keep(id_, open);
  return open;
}

size_t InputFile::read(uint64_t offset, char* out, size_t bytes) const { return read_at(*handle(), path_, offset, out, bytes); }

void InputFile::read_exactly(uint64_t offset, char* out, size_t bytes) const {
  const size_t n = read(offset, out, bytes);
  if (n == bytes) return;
  check_unchanged();
  fail("cannot read {}: it ends at byte {}, before byte {}", path_, offset + n, offset + bytes);
}

uint32_t InputFile::check_unchanged() const {
  struct stat s {};
  const OpenFiles::Handle open = files_->find(id_);
  if (open && ::fstat(open->fd(), &s) == 0) accept(FileStamp::of(s), "changed while it was in use");
  if (::stat(path_.c_str(), &s) != 0) fail("{} is gone while it was in use: {}", path_, std::strerror(errno));
  accept(FileStamp::of(s), "was changed or replaced while it was in use");
  return watch_->touched.load();
}

void InputFile::accept(const FileStamp& now, const char* problem) const {
  const std::lock_guard lock(watch_->mutex);
  if (now.same_state(watch_->stamp)) return;
  if (now.size != size_ || !watch_->sample || sample_of(*files_->open(path_), path_, size_) != *watch_->sample)
    fail("{} {}", path_, problem);
  watch_->stamp = now;
  watch_->touched.fetch_add(1);
  release();  // what is open may be the file that had this name before
}

uint64_t InputFile::sample() const {
  const OpenFiles::Handle open = handle();
  const std::lock_guard lock(watch_->mutex);
  if (!watch_->sample) watch_->sample = sample_of(*open, path_, size_);
  return *watch_->sample;
}

}  // namespace hlat::reader
