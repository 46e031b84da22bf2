// A library for LD_PRELOAD that makes the file system fail a process: calls of one kind on some paths kill it, fail, take their time or
// never return. So the program under test has no hook for it. Steered by the environment:
//
//   HLAT_FAULT        kill (before the call), kill_after, tear (kill after half of a write), sleep, hang, or ENOSPC, EIO, EACCES, EROFS
//   HLAT_FAULT_CALL   open, write, fsync, rename, read, mkdir, unlink
//   HLAT_FAULT_AT     the first call of that kind that it meets, counted from 1 (1)        HLAT_FAULT_CALLS  so many of them (all)
//   HLAT_FAULT_MS     how long sleep sleeps                                                HLAT_FAULT_PATH   part of the path
//   (/checkpoints/) HLAT_FAULT_RANK   only this rank of mpirun                                             HLAT_FAULT_NOTE   a file that
//   gets a line then
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>

namespace {

enum class Action { none, kill, kill_after, tear, sleep, hang, fail };

const char* variable(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

struct Fault {
  Action action = Action::none;
  int error = 0;
  std::string_view call, path;
  const char* note = nullptr;
  long at = 1, calls = 0, ms = 0;

  Fault()
      : call(variable("HLAT_FAULT_CALL", "")),
        path(variable("HLAT_FAULT_PATH", "/checkpoints/")),
        note(std::getenv("HLAT_FAULT_NOTE")),
        at(std::atol(variable("HLAT_FAULT_AT", "1"))),
        calls(std::atol(variable("HLAT_FAULT_CALLS", "1000000000"))),
        ms(std::atol(variable("HLAT_FAULT_MS", "0"))) {
    const std::string_view name = variable("HLAT_FAULT", ""), rank = variable("HLAT_FAULT_RANK", "");
    if (!rank.empty() && rank != variable("OMPI_COMM_WORLD_RANK", "")) return;
    constexpr struct {
      std::string_view name;
      Action action;
      int error;
    } kActions[] = {
        {"kill", Action::kill, 0},     {"kill_after", Action::kill_after, 0}, {"tear", Action::tear, 0},  {"sleep", Action::sleep, 0},
        {"hang", Action::hang, 0},     {"ENOSPC", Action::fail, ENOSPC},      {"EIO", Action::fail, EIO}, {"EACCES", Action::fail, EACCES},
        {"EROFS", Action::fail, EROFS}};
    for (const auto& known : kActions)
      if (known.name == name) action = known.action, error = known.error;
  }
};

const Fault& fault() {
  static const Fault fault;
  return fault;
}

std::atomic<long> g_calls = 0;

// A folder is on its own path too.
bool is_meant(std::string_view part, const char* path) {
  char whole[PATH_MAX + 2];
  std::snprintf(whole, sizeof whole, "%s/", path);
  return std::strstr(whole, part.data()) != nullptr;
}

bool strikes(const Fault& f, std::string_view call, const char* path) {
  if (f.action == Action::none || f.call != call || !is_meant(f.path, path)) return false;
  const long number = ++g_calls;
  return number >= f.at && number < f.at + f.calls;
}

template <class F>
F* next(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

void leave_note(const Fault& f, const char* path) {
  if (f.note == nullptr) return;
  char line[PATH_MAX + 64];
  const int bytes = std::snprintf(line, sizeof line, "%s %s\n", f.call.data(), path);
  const int fd = next<int(const char*, int, ...)>("open")(f.note, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return;
  if (next<ssize_t(int, const void*, size_t)>("write")(fd, line, static_cast<size_t>(bytes)) != bytes) std::abort();
  close(fd);
}

[[noreturn]] void die() {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

// work(share) does the call; of a write only one part of `share`.
template <class Work>
auto call_on(std::string_view call, const char* path, const Work& work) -> decltype(work(1)) {
  const Fault& f = fault();
  if (!strikes(f, call, path)) return work(1);
  leave_note(f, path);
  switch (f.action) {
    case Action::kill: die();
    case Action::kill_after: work(1); die();
    case Action::tear: work(2); die();
    case Action::hang:
      for (;;) pause();
    case Action::fail: errno = f.error; return -1;
    case Action::sleep: {
      timespec left{.tv_sec = f.ms / 1000, .tv_nsec = f.ms % 1000 * 1'000'000};
      while (nanosleep(&left, &left) != 0 && errno == EINTR) continue;
      return work(1);
    }
    case Action::none: break;
  }
  return work(1);
}

// The path of a descriptor, or of a name below one.
class Path {
 public:
  explicit Path(int fd, const char* name = nullptr) {
    char link[64];
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (name != nullptr && (fd == AT_FDCWD || *name == '/')) {
      std::snprintf(text_, sizeof text_, "%s", name);
      return;
    }
    const ssize_t n = std::max<ssize_t>(0, readlink(link, text_, PATH_MAX));
    std::snprintf(text_ + n, sizeof text_ - static_cast<size_t>(n), "%s%s", name != nullptr ? "/" : "", name != nullptr ? name : "");
  }
  const char* text() const { return text_; }

 private:
  char text_[2 * PATH_MAX] = {};
};

mode_t mode_of(int flags, va_list list) { return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(list, mode_t) : 0; }

int open_by(const char* symbol, const char* path, int flags, mode_t mode) {
  return call_on("open", path, [&](int) { return next<int(const char*, int, ...)>(symbol)(path, flags, mode); });
}

int openat_by(const char* symbol, int fd, const char* path, int flags, mode_t mode) {
  return call_on("open", Path(fd, path).text(), [&](int) { return next<int(int, const char*, int, ...)>(symbol)(fd, path, flags, mode); });
}

ssize_t pwrite_by(const char* symbol, int fd, const void* data, size_t bytes, off_t offset) {
  const auto work = [&](int share) {
    return next<ssize_t(int, const void*, size_t, off_t)>(symbol)(fd, data, bytes / static_cast<size_t>(share), offset);
  };
  return call_on("write", Path(fd).text(), work);
}

ssize_t pread_by(const char* symbol, int fd, void* to, size_t bytes, off_t offset) {
  return call_on("read", Path(fd).text(), [&](int) { return next<ssize_t(int, void*, size_t, off_t)>(symbol)(fd, to, bytes, offset); });
}

int sync_by(const char* symbol, int fd) {
  return call_on("fsync", Path(fd).text(), [&](int) { return next<int(int)>(symbol)(fd); });
}

int remove_by(const char* symbol, const char* path) {
  return call_on("unlink", path, [&](int) { return next<int(const char*)>(symbol)(path); });
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  return open_by("open", path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  return open_by("open64", path, flags, mode);
}

int openat(int fd, const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  return openat_by("openat", fd, path, flags, mode);
}

int openat64(int fd, const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  return openat_by("openat64", fd, path, flags, mode);
}

ssize_t write(int fd, const void* data, size_t bytes) {
  const auto work = [&](int share) {
    return next<ssize_t(int, const void*, size_t)>("write")(fd, data, bytes / static_cast<size_t>(share));
  };
  return call_on("write", Path(fd).text(), work);
}

ssize_t pwrite(int fd, const void* data, size_t bytes, off_t offset) { return pwrite_by("pwrite", fd, data, bytes, offset); }
ssize_t pwrite64(int fd, const void* data, size_t bytes, off64_t offset) { return pwrite_by("pwrite64", fd, data, bytes, offset); }

ssize_t read(int fd, void* to, size_t bytes) {
  return call_on("read", Path(fd).text(), [&](int) { return next<ssize_t(int, void*, size_t)>("read")(fd, to, bytes); });
}

ssize_t pread(int fd, void* to, size_t bytes, off_t offset) { return pread_by("pread", fd, to, bytes, offset); }
ssize_t pread64(int fd, void* to, size_t bytes, off64_t offset) { return pread_by("pread64", fd, to, bytes, offset); }

int fsync(int fd) { return sync_by("fsync", fd); }
int fdatasync(int fd) { return sync_by("fdatasync", fd); }

int rename(const char* from, const char* to) noexcept {
  return call_on("rename", to, [&](int) { return next<int(const char*, const char*)>("rename")(from, to); });
}

int mkdir(const char* path, mode_t mode) noexcept {
  return call_on("mkdir", path, [&](int) { return next<int(const char*, mode_t)>("mkdir")(path, mode); });
}

int remove(const char* path) noexcept { return remove_by("remove", path); }
int unlink(const char* path) noexcept { return remove_by("unlink", path); }
int rmdir(const char* path) noexcept { return remove_by("rmdir", path); }

int unlinkat(int fd, const char* name, int flags) noexcept {
  return call_on("unlink", Path(fd, name).text(), [&](int) { return next<int(int, const char*, int)>("unlinkat")(fd, name, flags); });
}

}  // extern "C"
