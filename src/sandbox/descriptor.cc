#include "sandbox/descriptor.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "base/file.h"

namespace hlat::sandbox {
namespace {

constexpr const char* kCannotOpen = "the sandbox cannot open a file descriptor";

Descriptor moved_up(Descriptor low) {
  const int high = low.number() < 0 ? -1 : fcntl(low.number(), F_DUPFD_CLOEXEC, Descriptor::kLowest);
  if (high < 0) fail_storage(errno, kCannotOpen);
  return Descriptor(high);
}

}  // namespace

void Descriptor::close() {
  if (number_ >= 0) ::close(number_);
  number_ = -1;
}

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) fail_storage(errno, kCannotOpen);
  Descriptor read_end(ends[0]), write_end(ends[1]);
  Pipe pipe{moved_up(std::move(read_end)), moved_up(std::move(write_end))};
  if (fcntl(pipe.read_end.number(), F_SETFL, O_NONBLOCK) != 0) fail_storage(errno, kCannotOpen);
  return pipe;
}

Descriptor open_null() { return moved_up(Descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC))); }

Descriptor make_memory_file(const std::string& content) {
  Descriptor file = moved_up(Descriptor(memfd_create("program", MFD_CLOEXEC)));
  for (std::string_view rest = content; !rest.empty();) {
    const ssize_t n = write(file.number(), rest.data(), rest.size());
    if (n < 0 && errno != EINTR) fail_storage(errno, "the sandbox cannot write a program into memory");
    rest.remove_prefix(static_cast<size_t>(std::max<ssize_t>(n, 0)));
  }
  if (lseek(file.number(), 0, SEEK_SET) != 0) fail_storage(errno, kCannotOpen);
  return file;
}

bool read_available(const Descriptor& from, std::string& text, size_t limit) {
  std::array<char, 16384> block{};
  for (;;) {
    const ssize_t n = read(from.number(), block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return true;
    const size_t kept = std::min(static_cast<size_t>(n), limit - text.size());
    text.append(block.data(), kept);
    if (kept < static_cast<size_t>(n)) return false;
  }
}

}  // namespace hlat::sandbox
