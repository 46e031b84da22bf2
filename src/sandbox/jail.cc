#include "sandbox/jail.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "sandbox/syscall_filter.h"

namespace hlat::sandbox {
namespace {

constexpr uint64_t kNamespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
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

// A signal that arrives in the copy, before it has left the caller's handlers behind, must not be handled twice.
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

// clone itself: fork would run the handlers of libraries (MPI's, CUDA's) that prepare for a copy which goes on.
Process clone_into(const Confinement& confinement) {
  int handle = -1;
  const SignalsBlocked blocked;
  const long id = syscall(SYS_clone, kNamespaces | CLONE_PIDFD | SIGCHLD, 0L, &handle, 0L, 0L);
  if (id == 0) confine(confinement);
  if (id < 0) refuse("make namespaces", errno);
  return {static_cast<pid_t>(id), Descriptor(handle)};
}

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

Jail::Running Jail::start(const Ends& ends) const {
  const bool root = geteuid() == 0;
  Pipe go = make_pipe(), report = make_pipe();
  const sock_fprog filter{static_cast<unsigned short>(filter_.size()), const_cast<sock_filter*>(filter_.data())};
  const std::vector<char*> arguments = pointers(arguments_), environment = pointers(environment_);
  Process process = clone_into(
      {.options = options_,
       .view = view_,
       .scratch_options = scratch_options_.c_str(),
       .filter = &filter,
       .arguments = arguments.data(),
       .environment = environment.data(),
       .clear_groups = root,
       .descriptors = {ends.input.number(), ends.output.number(), ends.output.number(), ends.program.number(), ends.verdict.number()},
       .may_go = go.read_end.number(),
       .report = report.write_end.number()});
  report.write_end.close();  // go.read_end stays: without it a process that died early would turn the write below into SIGPIPE
  map_ids(process.id(), root);
  write_proc(process.id(), "oom_score_adj", "1000");  // when the machine's memory ends, the program goes and not the caller
  if (write(go.write_end.number(), "", 1) != 1) refuse("start its process", errno);

  pollfd told{report.read_end.number(), POLLIN, 0};
  while (poll(&told, 1, -1) < 0 && errno == EINTR) {
  }
  Refusal refusal{};
  if (read(report.read_end.number(), &refusal, sizeof refusal) == sizeof refusal) refuse(refusal.step, refusal.error);
  return {std::move(process), std::move(go.write_end)};
}

}  // namespace hlat::sandbox
