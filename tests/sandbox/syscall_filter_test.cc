// The filter of system calls, judged by a small machine for its instructions: each answer is that of the filter and not of a kernel
// that would have refused anyway.
#include "sandbox/syscall_filter.h"

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace hlat::sandbox {
namespace {

#ifdef __x86_64__
constexpr uint32_t kThisMachine = AUDIT_ARCH_X86_64;
#else
constexpr uint32_t kThisMachine = AUDIT_ARCH_AARCH64;
#endif

uint32_t answer(long call, uint64_t first = 0, uint32_t machine = kThisMachine) {
  const std::vector<sock_filter> program = syscall_filter();
  seccomp_data data{};
  data.nr = static_cast<int>(call);
  data.arch = machine;
  data.args[0] = first;
  uint32_t loaded = 0;
  for (size_t i = 0; i < program.size(); ++i) {
    const sock_filter& step = program[i];
    const auto jump = [&](bool taken) { i += taken ? step.jt : step.jf; };
    switch (step.code) {
      case BPF_LD | BPF_W | BPF_ABS: std::memcpy(&loaded, reinterpret_cast<const char*>(&data) + step.k, sizeof loaded); break;
      case BPF_JMP | BPF_JEQ | BPF_K: jump(loaded == step.k); break;
      case BPF_JMP | BPF_JGT | BPF_K: jump(loaded > step.k); break;
      case BPF_JMP | BPF_JSET | BPF_K: jump((loaded & step.k) != 0); break;
      case BPF_RET | BPF_K: return step.k;
      default: ADD_FAILURE() << "instruction " << step.code; return 0;
    }
  }
  ADD_FAILURE() << "no answer";
  return 0;
}

constexpr uint32_t refused(int error) { return SECCOMP_RET_ERRNO | static_cast<uint32_t>(error); }

TEST(SandboxFilter, RefusesWaysToOthersAndToTheKernel) {
  for (const long call : {SYS_ptrace,
                          SYS_process_vm_readv,
                          SYS_process_vm_writev,
                          SYS_pidfd_getfd,
                          SYS_mount,
                          SYS_umount2,
                          SYS_pivot_root,
                          SYS_chroot,
                          SYS_fsopen,
                          SYS_fsmount,
                          SYS_move_mount,
                          SYS_open_tree,
                          SYS_mount_setattr,
                          SYS_unshare,
                          SYS_setns,
                          SYS_open_by_handle_at,
                          SYS_keyctl,
                          SYS_add_key,
                          SYS_request_key,
                          SYS_bpf,
                          SYS_perf_event_open,
                          SYS_kexec_load,
                          SYS_init_module,
                          SYS_finit_module,
                          SYS_io_uring_setup,
                          SYS_io_uring_enter,
                          SYS_io_uring_register,
                          SYS_userfaultfd,
                          SYS_memfd_create,
                          SYS_shmget,
                          SYS_msgget,
                          SYS_mq_open,
                          SYS_reboot})
    EXPECT_EQ(answer(call), refused(EPERM)) << call;
}

TEST(SandboxFilter, RefusesNewNamespacesAndLeavesForks) {
  for (const uint64_t flag : {CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET})
    EXPECT_EQ(answer(SYS_clone, flag | SIGCHLD), refused(EPERM)) << flag;
  EXPECT_EQ(answer(SYS_clone, SIGCHLD), SECCOMP_RET_ALLOW);
  EXPECT_EQ(answer(SYS_clone, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD), SECCOMP_RET_ALLOW);
  EXPECT_EQ(answer(SYS_clone3), refused(ENOSYS));
}

TEST(SandboxFilter, LeavesSocketsAmongItsOwnProcesses) {
  for (const long call : {SYS_socket, SYS_socketpair}) {
    EXPECT_EQ(answer(call, AF_UNIX), SECCOMP_RET_ALLOW);
    for (const int family : {AF_INET, AF_INET6, AF_NETLINK, AF_PACKET, AF_VSOCK, AF_ALG, AF_UNSPEC})
      EXPECT_EQ(answer(call, family), refused(EACCES));
  }
}

TEST(SandboxFilter, KeepsTheDeathWithTheCaller) {
  EXPECT_EQ(answer(SYS_prctl, PR_SET_PDEATHSIG), refused(EPERM));
  EXPECT_EQ(answer(SYS_prctl, PR_SET_NAME), SECCOMP_RET_ALLOW);
}

TEST(SandboxFilter, HasNoCallsThatItDoesNotKnow) {
  EXPECT_EQ(answer(451), refused(ENOSYS));
  EXPECT_EQ(answer(1000000), refused(ENOSYS));
  EXPECT_EQ(answer(-1), refused(ENOSYS));
  EXPECT_EQ(answer(0x40000000 + SYS_ptrace), refused(ENOSYS)) << "x32";
  EXPECT_EQ(answer(SYS_read, 0, AUDIT_ARCH_I386), SECCOMP_RET_KILL_PROCESS) << "numbers of another machine";
}

TEST(SandboxFilter, LeavesWhatProgramsUse) {
  for (const long call :
       {SYS_read, SYS_write, SYS_openat, SYS_mmap, SYS_brk, SYS_execve, SYS_futex, SYS_wait4, SYS_kill, SYS_pipe2, SYS_getrandom})
    EXPECT_EQ(answer(call), SECCOMP_RET_ALLOW) << call;
}

}  // namespace
}  // namespace hlat::sandbox
