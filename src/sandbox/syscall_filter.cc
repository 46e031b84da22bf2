#include "sandbox/syscall_filter.h"

#include <linux/audit.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>

namespace hlat::sandbox {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kMachine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kMachine = AUDIT_ARCH_AARCH64;
#else
#error "the sandbox's filter of system calls knows x86-64 and aarch64"
#endif

// Calls that came later than those of Linux 6.1 are not known here and do not exist for the program. Numbers above 424 are
// the same on all machines; the 32-bit calls of x86-64 (x32) lie far above.
constexpr uint32_t kNewest = SYS_set_mempolicy_home_node;

constexpr uint32_t kNewNamespaces =
    CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

constexpr std::array kOtherProcesses{SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_process_madvise, SYS_process_mrelease,
                                     SYS_kcmp,   SYS_pidfd_getfd};
constexpr std::array kFileSystemsAndNamespaces{SYS_mount,
                                               SYS_umount2,
                                               SYS_pivot_root,
                                               SYS_chroot,
                                               SYS_move_mount,
                                               SYS_open_tree,
                                               SYS_fsopen,
                                               SYS_fsconfig,
                                               SYS_fsmount,
                                               SYS_fspick,
                                               SYS_mount_setattr,
                                               SYS_unshare,
                                               SYS_setns,
                                               SYS_open_by_handle_at,
                                               SYS_name_to_handle_at,
                                               SYS_fanotify_init,
                                               SYS_quotactl,
                                               SYS_quotactl_fd,
                                               SYS_swapon,
                                               SYS_swapoff};
// It belongs to no process, or is not counted as resident.
constexpr std::array kHiddenMemory{SYS_memfd_create, SYS_memfd_secret, SYS_shmget,          SYS_shmat, SYS_shmctl,
                                   SYS_msgget,       SYS_msgsnd,       SYS_semget,          SYS_semop, SYS_semtimedop,
                                   SYS_mq_open,      SYS_userfaultfd,  SYS_remap_file_pages};
// io_uring does what other calls do, past this filter.
constexpr std::array kKeysTracingAndAsynchronous{SYS_add_key,           SYS_request_key,    SYS_keyctl,         SYS_bpf,
                                                 SYS_perf_event_open,   SYS_lookup_dcookie, SYS_io_uring_setup, SYS_io_uring_enter,
                                                 SYS_io_uring_register, SYS_io_setup};
constexpr std::array kTheMachine{SYS_kexec_load,
                                 SYS_kexec_file_load,
                                 SYS_init_module,
                                 SYS_finit_module,
                                 SYS_delete_module,
                                 SYS_reboot,
                                 SYS_syslog,
                                 SYS_acct,
                                 SYS_vhangup,
                                 SYS_sethostname,
                                 SYS_setdomainname,
                                 SYS_settimeofday,
                                 SYS_clock_settime,
                                 SYS_clock_adjtime,
                                 SYS_adjtimex,
                                 SYS_personality,
                                 SYS_mbind,
                                 SYS_migrate_pages,
                                 SYS_move_pages,
                                 SYS_set_mempolicy,
                                 SYS_set_mempolicy_home_node};
#ifdef __x86_64__
constexpr std::array kOfThisMachine{SYS_iopl,  SYS_ioperm, SYS_modify_ldt,    SYS__sysctl,   SYS_uselib,
                                    SYS_ustat, SYS_sysfs,  SYS_create_module, SYS_nfsservctl};
#else
constexpr std::array<int, 0> kOfThisMachine{};
#endif

constexpr uint32_t refuse(int error) { return SECCOMP_RET_ERRNO | static_cast<uint32_t>(error); }

constexpr uint32_t argument(size_t index) {  // its lower half, on little-endian machines
  return static_cast<uint32_t>(offsetof(seccomp_data, args) + index * sizeof(uint64_t));
}

class Filter {
 public:
  void load(size_t offset) { add(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)); }
  void answer(uint32_t action) { add(BPF_RET | BPF_K, action); }
  // One instruction follows and is skipped unless the loaded value has the relation to `value`.
  void when(uint16_t relation, uint32_t value) { program_.push_back({uint16_t(BPF_JMP | relation | BPF_K), 0, 1, value}); }
  void unless(uint16_t relation, uint32_t value) { program_.push_back({uint16_t(BPF_JMP | relation | BPF_K), 1, 0, value}); }

  // For one call: refused when its argument stands in the relation to `value`. All calls behind it are judged before.
  void refuse_argument(uint32_t call, size_t index, bool when_it_is, uint16_t relation, uint32_t value, int error) {
    program_.push_back({BPF_JMP | BPF_JEQ | BPF_K, 0, 4, call});
    load(argument(index));
    when_it_is ? when(relation, value) : unless(relation, value);
    answer(refuse(error));
    answer(SECCOMP_RET_ALLOW);
  }

  std::vector<sock_filter> take() { return std::move(program_); }

 private:
  void add(int code, uint32_t value) { program_.push_back({static_cast<uint16_t>(code), 0, 0, value}); }
  std::vector<sock_filter> program_;
};

}  // namespace

std::vector<sock_filter> syscall_filter() {
  Filter filter;
  filter.load(offsetof(seccomp_data, arch));
  filter.unless(BPF_JEQ, kMachine);
  filter.answer(SECCOMP_RET_KILL_PROCESS);
  filter.load(offsetof(seccomp_data, nr));
  filter.when(BPF_JGT, kNewest);
  filter.answer(refuse(ENOSYS));
  for (const std::span<const int> calls :
       {std::span<const int>(kOtherProcesses), std::span<const int>(kFileSystemsAndNamespaces), std::span<const int>(kHiddenMemory),
        std::span<const int>(kKeysTracingAndAsynchronous), std::span<const int>(kTheMachine), std::span<const int>(kOfThisMachine)})
    for (const int call : calls) {
      filter.when(BPF_JEQ, static_cast<uint32_t>(call));
      filter.answer(refuse(EPERM));
    }
  filter.when(BPF_JEQ, SYS_clone3);  // its flags lie in memory, where no filter can see them; all libraries fall back on clone
  filter.answer(refuse(ENOSYS));
  filter.refuse_argument(SYS_clone, 0, true, BPF_JSET, kNewNamespaces, EPERM);
  // Sockets of other families reach hosts (AF_VSOCK knows no namespaces) and much of the kernel.
  filter.refuse_argument(SYS_socket, 0, false, BPF_JEQ, AF_UNIX, EACCES);
  filter.refuse_argument(SYS_socketpair, 0, false, BPF_JEQ, AF_UNIX, EACCES);
  filter.refuse_argument(SYS_prctl, 0, true, BPF_JEQ, PR_SET_PDEATHSIG, EPERM);
  filter.answer(SECCOMP_RET_ALLOW);
  return filter.take();
}

}  // namespace hlat::sandbox
