#include "sandbox/process.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/file.h"

namespace hlat::sandbox {

namespace fs = std::filesystem;

Process::~Process() {
  if (handle_.number() < 0) return;
  kill();
  siginfo_t ignored{};
  while (waitid(P_PIDFD, static_cast<id_t>(handle_.number()), &ignored, WEXITED) != 0 && errno == EINTR) {
  }
}

void Process::kill() const { syscall(SYS_pidfd_send_signal, handle_.number(), SIGKILL, nullptr, 0); }

Process::End Process::collect() {
  siginfo_t info{};
  while (waitid(P_PIDFD, static_cast<id_t>(handle_.number()), &info, WEXITED) != 0)
    if (errno != EINTR) fail_storage(errno, "the sandbox cannot wait for its process");
  handle_.close();
  if (info.si_code == CLD_EXITED) return {.exit_status = info.si_status};
  return {.signal = info.si_status};
}

std::vector<pid_t> process_tree(pid_t root) {
  std::vector<pid_t> tree{root};
  for (size_t i = 0; i < tree.size(); ++i) {
    std::error_code gone;
    for (fs::directory_iterator thread(fs::path("/proc") / std::to_string(tree[i]) / "task", gone), end; !gone && thread != end;
         thread.increment(gone)) {
      std::ifstream children(thread->path() / "children");
      for (pid_t child = 0; children >> child;) tree.push_back(child);
    }
  }
  return tree;
}

uint64_t own_memory(const std::vector<pid_t>& processes) {
  uint64_t pages = 0;
  for (const pid_t process : processes) {
    std::ifstream statm(fs::path("/proc") / std::to_string(process) / "statm");
    uint64_t size = 0, resident = 0, shared = 0;
    if (statm >> size >> resident >> shared) pages += resident - std::min(resident, shared);
  }
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace hlat::sandbox
