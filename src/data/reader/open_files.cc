#include "data/reader/open_files.h"
#include "base/file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace hlat::reader {
namespace {

constexpr size_t kMaps = 16384;  // of the 65530 that Linux gives a process

// The usual limit on open files is 1024 of many more that are allowed.
size_t raised_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  const rlim_t before = std::exchange(limit.rlim_cur, limit.rlim_max);
  return setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_max : before;
}

}  // namespace

OpenFiles::OpenFiles() : OpenFiles(std::clamp<size_t>(raised_file_limit() / 4, 64, 16384), kMaps) {}

OpenFiles::Descriptor::~Descriptor() { ::close(fd_); }

OpenFiles::Handle OpenFiles::find(uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto place = places_.find(id);
  if (place == places_.end()) return nullptr;
  recent_.splice(recent_.begin(), recent_, place->second);
  return place->second->handle;
}

OpenFiles::Handle OpenFiles::open(const std::string& path) {
  while (true) {
    // O_NONBLOCK: opening a pipe must not wait for a writer.
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0) return std::make_shared<const Descriptor>(fd);
    const int error = errno;
    const std::lock_guard lock(mutex_);
    if ((error != EMFILE && error != ENFILE) || recent_.empty()) fail_storage(error, "cannot open " + path);
    drop_oldest(recent_.size() / 2);  // others in this process need descriptors too
  }
}

void OpenFiles::keep(uint64_t id, const Handle& handle) {
  const std::lock_guard lock(mutex_);
  if (const auto place = places_.find(id); place != places_.end()) {
    place->second->handle = handle;
    return;
  }
  recent_.push_front({id, handle});
  places_[id] = recent_.begin();
  drop_oldest(most_);
}

void OpenFiles::forget(uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto place = places_.find(id);
  if (place == places_.end()) return;
  recent_.erase(place->second);
  places_.erase(place);
}

size_t OpenFiles::open_now() const {
  const std::lock_guard lock(mutex_);
  return recent_.size();
}

void OpenFiles::drop_oldest(size_t most) {
  while (recent_.size() > most) {
    places_.erase(recent_.back().id);
    recent_.pop_back();
  }
}

}  // namespace hlat::reader
