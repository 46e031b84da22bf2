#include "sandbox/confinement.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/filter.h>
#include <linux/mount.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <type_traits>

namespace hlat::sandbox {
namespace {

constexpr int kMayGo = 5, kReport = 6;    // behind the program's own descriptors
constexpr int kDetach = 2;                // MNT_DETACH, in a header that cannot stand beside linux/mount.h
constexpr const char* kNewRoot = "/tmp";  // every system has it, and nothing of it is seen inside
constexpr const char* kScratch = "tmp";

template <class T>
long word(T value) {
  if constexpr (std::is_pointer_v<T>)
    return reinterpret_cast<long>(value);
  else if constexpr (std::is_null_pointer_v<T>)
    return 0;
  else
    return static_cast<long>(value);
}

template <class... Args>
long ask(long call, Args... args) {
  return syscall(call, word(args)...);
}

[[noreturn]] void leave() {
  for (;;) ask(SYS_exit_group, 127);
}

// Calls that the confinement cannot do without.
class Needed {
 public:
  explicit Needed(Refusal& refusal) : refusal_(refusal) {}

  template <class... Args>
  long operator()(const char* step, long call, Args... args) const {
    const long result = ask(call, args...);
    if (result >= 0) return result;
    refusal_ = {step, errno};
    leave();
  }

 private:
  Refusal& refusal_;
};

void take_descriptors(const Needed& need, const Confinement& c) {
  // Sources lie above all of these numbers (Descriptor::kLowest).
  for (int number = 0; number < static_cast<int>(c.descriptors.size()); ++number) ask(SYS_dup3, c.descriptors[number], number, 0);
  ask(SYS_dup3, c.may_go, kMayGo, O_CLOEXEC);
  need("ask for ids", SYS_write, c.asks, "", 1);
  need("close the caller's files", SYS_close_range, kMayGo + 1, ~0U, 0);
}

void wait_for_go() {
  pollfd may_go{kMayGo, POLLIN, 0};
  while (ask(SYS_ppoll, &may_go, 1, nullptr, nullptr, 0) < 0) {
  }
  char byte = 0;
  if (ask(SYS_read, kMayGo, &byte, 1) != 1) leave();
}

void die_with_caller(const Needed& need) {
  need("ask to die with the caller", SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);  // after the ids: a change of them clears it
  pollfd may_go{kMayGo, 0, 0};
  const timespec now{0, 0};
  if (ask(SYS_ppoll, &may_go, 1, &now, nullptr, 0) > 0) leave();  // it died before
}

void take_ids(const Needed& need, bool clear_groups) {
  if (clear_groups) need("give up the groups", SYS_setgroups, 0, nullptr);
  need("become an unprivileged group", SYS_setresgid, kInsideId, kInsideId, kInsideId);
  need("become an unprivileged user", SYS_setresuid, kInsideId, kInsideId, kInsideId);
  need("start a session", SYS_setsid);
}

// Adds what a mount and, where `below`, those below it must have.
void restrict_mount(const Needed& need, const char* path, uint64_t attributes, bool below) {
  mount_attr attr{};
  attr.attr_set = attributes;
  need("restrict a mount", SYS_mount_setattr, AT_FDCWD, path, below ? AT_RECURSIVE : 0, &attr, sizeof attr);
}

void make_place(const Needed& need, const Place& place) {
  const char* source = place.source.c_str();
  const char* target = place.target.c_str();
  if (place.kind == Place::Kind::link) {
    need("make a link", SYS_symlinkat, source, AT_FDCWD, target);
    return;
  }
  const bool folder = place.kind == Place::Kind::folder;
  if (folder)
    need("make a folder", SYS_mkdirat, AT_FDCWD, target, 0755);
  else
    ask(SYS_close, need("make a file", SYS_openat, AT_FDCWD, target, O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  need("mount a part of the system", SYS_mount, source, target, nullptr, MS_BIND | MS_REC, nullptr);
  if (place.kind == Place::Kind::device)
    restrict_mount(need, target, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, false);
  else
    restrict_mount(need, target, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, true);
}

void build_root(const Needed& need, const Confinement& c) {
  need("keep mounts to itself", SYS_mount, nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  need("mount a new root", SYS_mount, "tmpfs", kNewRoot, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=64k,nr_inodes=64,mode=755");
  need("enter the new root", SYS_chdir, kNewRoot);
  for (const char* folder : {"etc", "dev", kScratch}) need("make a folder", SYS_mkdirat, AT_FDCWD, folder, 0755);
  for (const Place& place : c.view) make_place(need, place);
  need("mount the scratch folder", SYS_mount, "tmpfs", kScratch, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, c.scratch_options);
  need("change the root", SYS_pivot_root, ".", ".");  // the old one is then on top of the new one
  need("leave the old root", SYS_umount2, ".", kDetach);
  need("enter the new root", SYS_chdir, "/");
  restrict_mount(need, "/", MOUNT_ATTR_RDONLY, false);
  need("enter the scratch folder", SYS_chdir, kScratch);
  need("name the host", SYS_sethostname, "sandbox", 7);
}

void limit(const Needed& need, int resource, uint64_t value) {
  rlimit now{};
  need("read a limit", SYS_prlimit64, 0, resource, nullptr, &now);
  now.rlim_max = std::min<rlim_t>(now.rlim_max, value);
  now.rlim_cur = now.rlim_max;
  need("set a limit", SYS_prlimit64, 0, resource, &now, nullptr);
}

void take_limits(const Needed& need, const Options& options) {
  limit(need, RLIMIT_AS, options.memory);
  limit(need, RLIMIT_NPROC, static_cast<uint64_t>(options.processes));  // of this user in this user namespace (Linux 5.14)
  limit(need, RLIMIT_FSIZE, options.scratch_bytes);
  // Holds a run whose caller was stopped and does not look at the clock.
  limit(need, RLIMIT_CPU, static_cast<uint64_t>(options.seconds) * static_cast<uint64_t>(options.processes) + 1);
  limit(need, RLIMIT_STACK, uint64_t{8} << 20);
  limit(need, RLIMIT_NOFILE, 256);
  limit(need, RLIMIT_SIGPENDING, 256);
  for (const int none : {RLIMIT_CORE, RLIMIT_MEMLOCK, RLIMIT_MSGQUEUE, RLIMIT_RTPRIO}) limit(need, none, 0);
}

void give_up_privileges(const Needed& need, const sock_fprog* filter) {
  for (int capability = 0; capability <= CAP_LAST_CAP; ++capability) ask(SYS_prctl, PR_CAPBSET_DROP, capability, 0, 0, 0);
  need("give up set-uid programs", SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> none{};
  need("give up capabilities", SYS_capset, &header, none.data());
  need("filter system calls", SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, filter);
}

// Signals that the caller ignores or blocks would stay so.
void reset_signals(const Needed& need) {
  const std::array<uint64_t, 8> by_default{};  // the kernel's struct sigaction, at least
  for (int signal = 1; signal <= 64; ++signal) ask(SYS_rt_sigaction, signal, by_default.data(), nullptr, sizeof(uint64_t));
  const uint64_t nothing = 0;
  need("unblock signals", SYS_rt_sigprocmask, SIG_SETMASK, &nothing, nullptr, sizeof nothing);
}

}  // namespace

int confine(void* confinement) {
  const Confinement& c = *static_cast<const Confinement*>(confinement);
  const Needed need(c.refusal);
  take_descriptors(need, c);
  wait_for_go();
  take_ids(need, c.clear_groups);
  die_with_caller(need);
  ask(SYS_umask, 022);
  build_root(need, c);
  reset_signals(need);
  take_limits(need, c.options);
  give_up_privileges(need, c.filter);
  need("start python3", SYS_execve, c.arguments[0], c.arguments, c.environment);
  leave();
}

}  // namespace hlat::sandbox
