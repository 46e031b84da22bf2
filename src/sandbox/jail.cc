#include "sandbox/jail.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <thread>

#include "base/error.h"
#include "sandbox/syscall_filter.h"

// The C library's clone by its other name: ThreadSanitizer takes every `clone` for a fork that copies memory.
extern "C" int __clone(int (*run)(void*), void* stack, int flags, void* argument, ...);

namespace hlat::sandbox {
namespace {

constexpr int kNamespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
constexpr size_t kStack = size_t{256} << 10;
constexpr uid_t kNobody = 65534;  // what root's programs are to the host

[[noreturn]] void refuse(const char* step, int error) {
  const std::string what = fmt::format("the sandbox for untrusted programs cannot {}: {}", step, std::strerror(error));
  if (error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE || error == EINTR) throw FaultError(what);
  fail<UsageError>(
      "{}; no program runs without it. It needs Linux 5.14 or newer that lets this user make user namespaces: sysctl "
      "user.max_user_namespaces above 0 and, for users other than root, kernel.unprivileged_userns_clone=1 (Debian) and "
      "kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu). A container has to allow them too (docker run --security-opt "
      "seccomp=unconfined --security-opt apparmor=unconfined, or --privileged)",
      what);
}

// Before it a limit of processes counts all that the user has on the machine.
void check_kernel() {
  utsname system{};
  int major = 0, minor = 0;
  if (uname(&system) == 0 && std::sscanf(system.release, "%d.%d", &major, &minor) == 2 && std::pair(major, minor) >= std::pair(5, 14))
    return;
  fail<UsageError>("the sandbox for untrusted programs needs Linux 5.14 or newer; this is {}", system.release);
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  for (const std::string& text : words) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

// A signal that reaches the new process while it still has the handlers of this one must not be handled there.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all{};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

bool write_proc(pid_t process, const char* name, const std::string& text) {
  const Descriptor file(open(fmt::format("/proc/{}/{}", process, name).c_str(), O_WRONLY | O_CLOEXEC));
  return file.number() >= 0 && write(file.number(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// The one user and the one group that exist inside. Root is not among them, whoever calls.
void map_ids(pid_t process, bool root) {
  // Without privilege the groups of the caller stay, and the kernel wants them fixed.
  if (!root && !write_proc(process, "setgroups", "deny")) refuse("fix its groups", errno);
  const auto map = [](uid_t outside) { return fmt::format("{} {} 1", kInsideId, outside); };
  if (!write_proc(process, "gid_map", map(root ? kNobody : getegid())) || !write_proc(process, "uid_map", map(root ? kNobody : geteuid())))
    refuse("map its user to one without privileges", errno);
}

// Lets the new process go on once it has ids. The thread that makes the process cannot: it stands still until the program is started.
class IdGiver {
 public:
  explicit IdGiver(const pid_t& process) : thread_([this, &process] { give(process); }) {}
  ~IdGiver() { join(); }
  IdGiver(const IdGiver&) = delete;
  IdGiver& operator=(const IdGiver&) = delete;

  int asks() const { return asked_.write_end.number(); }
  int may_go() const { return go_.read_end.number(); }
  // For when the process has started its program, or ended. Gives what is open as long as the caller lives; throws why there were no ids.
  Descriptor stop() {
    join();
    if (failure_) std::rethrow_exception(failure_);
    return std::move(go_.write_end);
  }

 private:
  void give(const pid_t& process) {
    pollfd asked{asked_.read_end.number(), POLLIN, 0};
    while (poll(&asked, 1, -1) < 0 && errno == EINTR) {
    }
    char byte = 0;
    if (read(asked.fd, &byte, 1) != 1) return;
    try {
      map_ids(process, geteuid() == 0);
      if (write(go_.write_end.number(), "", 1) != 1) refuse("start its process", errno);
    } catch (...) {
      failure_ = std::current_exception();
      go_.write_end.close();
    }
  }

  void join() {
    asked_.write_end.close();
    if (thread_.joinable()) thread_.join();
  }

  Pipe asked_ = make_pipe(), go_ = make_pipe();
  std::exception_ptr failure_;
  std::thread thread_;  // last: it uses the others
};

Descriptor open_process(pid_t id) {
  Descriptor handle(static_cast<int>(syscall(SYS_pidfd_open, id, 0)));
  if (handle.number() >= 0) return handle;
  const int error = errno;
  kill(id, SIGKILL);
  waitpid(id, nullptr, 0);
  refuse("hold its process", error);
}

// A new process that shares this one's memory until it executes a program, so that nothing has to be copied. This thread stands still
// meanwhile; the new process has a stack of its own.
pid_t clone_into(Confinement& confinement, pid_t& id) {
  std::vector<std::byte> stack(kStack);
  const SignalsBlocked blocked;
  return __clone(confine, stack.data() + stack.size(), kNamespaces | CLONE_VM | CLONE_VFORK | CLONE_PARENT_SETTID | SIGCHLD, &confinement,
                 &id);
}

}  // namespace

Jail::Jail(const Options& options, const std::vector<std::string>& interpreter)
    : options_(options),
      filter_(syscall_filter()),
      scratch_options_(fmt::format("size={},nr_inodes={},mode=700", options.scratch_bytes, options.scratch_files + 1)),  // itself
      arguments_{find_python()},
      environment_{"PATH=/usr/local/bin:/usr/bin:/bin",
                   "HOME=/tmp",
                   "LANG=C.UTF-8",
                   "PYTHONHASHSEED=0",
                   "OMP_NUM_THREADS=1",
                   "OPENBLAS_NUM_THREADS=1"} {
  check_kernel();
  arguments_.insert(arguments_.end(), interpreter.begin(), interpreter.end());
}

bool Jail::is_dumpable() { return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1; }

Jail::Running Jail::start(const Ends& ends) const {
  pid_t id = -1;
  IdGiver ids(id);
  const sock_fprog filter{static_cast<unsigned short>(filter_.size()), const_cast<sock_filter*>(filter_.data())};
  const std::vector<char*> arguments = pointers(arguments_), environment = pointers(environment_);
  Refusal refusal{};
  Confinement confinement{
      .options = options_,
      .view = view_,
      .scratch_options = scratch_options_.c_str(),
      .filter = &filter,
      .arguments = arguments.data(),
      .environment = environment.data(),
      .clear_groups = geteuid() == 0,
      .descriptors = {ends.input.number(), ends.output.number(), ends.output.number(), ends.program.number(), ends.verdict.number()},
      .asks = ids.asks(),
      .may_go = ids.may_go(),
      .refusal = refusal};
  if (clone_into(confinement, id) < 0) refuse("make namespaces", errno);
  Process process(id, open_process(id));
  if (dumpable_) prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);  // a change of ids took it from all that share the memory
  Descriptor life = ids.stop();
  if (refusal.step != nullptr) refuse(refusal.step, refusal.error);
  write_proc(id, "oom_score_adj", "1000");  // when the machine's memory ends, the program goes and not the caller
  return {std::move(process), std::move(life)};
}

}  // namespace hlat::sandbox
