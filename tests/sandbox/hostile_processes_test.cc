// Hostile programs that attack other processes, outlive their run or look for more rights.
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/error.h"
#include "support/sandbox_fixture.h"

namespace hlat::test {
namespace {

using sandbox::Options;
using sandbox::Outcome;
using sandbox::RunResult;

class HostileProcesses : public SandboxTest {
 protected:
  // system(number, arguments...) in Python: an OSError like other calls.
  static std::string with_system_calls(const std::string& program) {
    return R"(
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def system(number, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
)" + program;
  }

  // A word that names the processes of one test.
  static std::string word() { return fmt::format("hlat-hostile-{}", getpid()); }
};

// A process outside that has the user of the program, so that permissions alone would not protect it.
class Victim {
 public:
  Victim() : id_(fork()) {
    if (id_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(1);
    for (;;) pause();
  }
  ~Victim() {
    ::kill(id_, SIGKILL);
    waitpid(id_, nullptr, 0);
  }
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;
  pid_t id() const { return id_; }
  bool lives() const { return waitpid(id_, nullptr, WNOHANG) == 0; }

 private:
  pid_t id_;
};

TEST_F(HostileProcesses, SignalsEverybody) {
  const Victim victim;
  const RunResult result = run(fmt::format(R"(
import os, signal
for target in -1, {}, {}, 2:
    for number in signal.SIGTERM, signal.SIGSTOP, signal.SIGKILL:
        try:
            os.kill(target, number)
            print('reached', target)
        except ProcessLookupError:
            pass
for number in signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM:
    os.kill(os.getpid(), number)  # nothing reaches the first process from inside
assert os.getppid() == 0
)",
                                           victim.id(), getpid()));
  EXPECT_EQ(result.outcome, Outcome::passed) << result.output;
  EXPECT_EQ(result.output, "");
  EXPECT_TRUE(victim.lives());
}

TEST_F(HostileProcesses, SignalsItsGroupAndSession) {
  const RunResult result = run("import os, signal\nos.kill(0, signal.SIGKILL)\nprint(os.getsid(0), os.getpgid(0))");
  EXPECT_EQ(result.outcome, Outcome::passed) << result.output;
  EXPECT_EQ(result.output, "1 1\n");
}

TEST_F(HostileProcesses, IgnoresAllSignals) {
  Options options = limits();
  options.seconds = 2;
  const RunResult result = run(R"(
import os, signal
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
os.fork()
while True: pass
)",
                               options);
  EXPECT_EQ(result.outcome, Outcome::timed_out) << result.output;
  EXPECT_EQ(result.signal, SIGKILL);
}

TEST_F(HostileProcesses, DaemonOutlivesItsProgram) {
  const RunResult result = run(fmt::format(R"(
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 256)
        os.execv('/usr/bin/python3', ['python3', '-c', 'import time; time.sleep(10 ** 6)', '{}'])
    os._exit(0)
time.sleep(0.5)
)",
                                           word()));
  EXPECT_EQ(result.outcome, Outcome::passed) << result.output;
  EXPECT_EQ(processes_with(word()), 0);
}

TEST_F(HostileProcesses, LeavesZombies) {
  const RunResult result = run("import os\nfor i in range(8):\n    if os.fork() == 0: os._exit(0)");
  EXPECT_EQ(result.outcome, Outcome::passed) << result.output;
}

TEST_F(HostileProcesses, TracesOthers) {
  const Victim victim;
  expect_all_refused(with_system_calls(fmt::format(R"(
import os, time
child = os.fork()
if child == 0:
    time.sleep(1000)
for target in {victim}, {caller}, child:
    attempt('attach', lambda: system({ptrace}, 16, target, 0, 0))
    attempt('seize', lambda: system({ptrace}, 0x4206, target, 0, 0))
    attempt('memory', lambda: system({readv}, target, 0, 0, 0, 0, 0))
attempt('trace me', lambda: system({ptrace}, 0, 0, 0, 0))
)",
                                                   fmt::arg("victim", victim.id()), fmt::arg("caller", getpid()),
                                                   fmt::arg("ptrace", SYS_ptrace), fmt::arg("readv", SYS_process_vm_readv))),
                     10);
  EXPECT_TRUE(victim.lives());
}

TEST_F(HostileProcesses, BecomesRoot) {
  expect_all_refused(R"(
import ctypes, os
assert os.getresuid() == (1000, 1000, 1000) and os.getresgid() == (1000, 1000, 1000)
attempt('setuid', lambda: os.setuid(0))
attempt('setgid', lambda: os.setgid(0))
attempt('seteuid', lambda: os.seteuid(0))
attempt('setreuid', lambda: os.setreuid(0, 0))
attempt('setgroups', lambda: os.setgroups([0]))
attempt('chroot', lambda: os.chroot('/tmp'))
attempt('nice', lambda: os.nice(-5))
open('/tmp/program', 'w').write('#!/bin/sh\nid -u')
attempt('set-uid file', lambda: (os.chmod('/tmp/program', 0o6755), os.execv('/tmp/program', ['program'])))
assert ctypes.CDLL(None).prctl(39, 0, 0, 0, 0) == 1  # no new privileges
)",
                     8);
}

TEST_F(HostileProcesses, MountsAndMakesNamespaces) {
  expect_all_refused(
      with_system_calls(fmt::format(R"(
for flag in 0x10000000, 0x20000, 0x20000000, 0x40000000, 0x8000000, 0x4000000, 0x2000000, 0x80:
    attempt('unshare', lambda: system({unshare}, flag))
    if flag != 0x80:
        attempt('clone', lambda: system({clone}, flag | 17, 0, 0, 0, 0) or os._exit(0))
attempt('clone3', lambda: system({clone3}, bytes(88), 88) or os._exit(0))
attempt('tmpfs', lambda: system({mount}, b'none', b'/tmp', b'tmpfs', 0, 0))
attempt('remount', lambda: system({mount}, b'none', b'/usr', 0, 32 | 4096, 0))
attempt('umount', lambda: system({umount}, b'/usr', 2))
attempt('fsopen', lambda: system({fsopen}, b'proc', 0))
attempt('pivot_root', lambda: system({pivot_root}, b'/tmp', b'/tmp'))
)",
                                    fmt::arg("unshare", SYS_unshare), fmt::arg("clone", SYS_clone), fmt::arg("clone3", SYS_clone3),
                                    fmt::arg("mount", SYS_mount), fmt::arg("umount", SYS_umount2), fmt::arg("fsopen", SYS_fsopen),
                                    fmt::arg("pivot_root", SYS_pivot_root))),
      21);
}

TEST_F(HostileProcesses, UsesDangerousSystemCalls) {
  expect_all_refused(
      with_system_calls(fmt::format(R"(
for number in {bpf}, {perf}, {keyctl}, {add_key}, {io_uring}, {kexec}, {module}, {reboot}, {userfaultfd}, {handle}, {fanotify}, {setns}, {syslog}:
    attempt(number, lambda: system(number, 0, 0, 0, 0, 0))
attempt('later than the filter', lambda: system(451, 0, 0, 0, 0, 0))
attempt('x32', lambda: system(0x40000000 + 39))
)",
                                    fmt::arg("bpf", SYS_bpf), fmt::arg("perf", SYS_perf_event_open), fmt::arg("keyctl", SYS_keyctl),
                                    fmt::arg("add_key", SYS_add_key), fmt::arg("io_uring", SYS_io_uring_setup),
                                    fmt::arg("kexec", SYS_kexec_load), fmt::arg("module", SYS_init_module), fmt::arg("reboot", SYS_reboot),
                                    fmt::arg("userfaultfd", SYS_userfaultfd), fmt::arg("handle", SYS_open_by_handle_at),
                                    fmt::arg("fanotify", SYS_fanotify_init), fmt::arg("setns", SYS_setns), fmt::arg("syslog", SYS_syslog))),
      15);
}

// Memory that would stay uncounted: it belongs to files without a place, or to nobody.
TEST_F(HostileProcesses, HidesMemoryFromTheLimits) {
  expect_all_refused(
      with_system_calls(fmt::format(R"(
import os
attempt('memory file', lambda: os.memfd_create('hidden'))
attempt('shared memory', lambda: system({shmget}, 0, 1 << 30, 0o1600))
attempt('message queue', lambda: system({msgget}, 0, 0o1600))
attempt('posix queue', lambda: system({mq_open}, b'queue', 0o102, 0o600, 0))
)",
                                    fmt::arg("shmget", SYS_shmget), fmt::arg("msgget", SYS_msgget), fmt::arg("mq_open", SYS_mq_open))),
      4);
}

TEST_F(HostileProcesses, SurvivesItsCaller) {
  if (!kCopiesCanRun) GTEST_SKIP() << "the thread sanitizer forbids threads in a copy of the process";
  const std::string program = fmt::format(R"(
import ctypes, os, signal
libc = ctypes.CDLL(None)
assert libc.prctl(1, 0, 0, 0, 0) == -1  # a wish not to die with the parent
os.fork()
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
os.execv('/usr/bin/python3', ['python3', '-c', 'import time; time.sleep(10 ** 6)', '{}'])
)",
                                          word());
  const pid_t caller = fork();
  if (caller == 0) {
    run(program);
    _exit(0);
  }
  EXPECT_TRUE(happens([&] { return processes_with(word()) == 2; }));
  kill(caller, SIGKILL);
  waitpid(caller, nullptr, 0);
  EXPECT_TRUE(happens([&] { return processes_with(word()) == 0; }));
}

TEST_F(HostileProcesses, ClosesItsDescriptors) {
  const RunResult result = run("import os\nos.closerange(0, 256)\nfor i in range(10 ** 6): pass");
  EXPECT_NE(result.outcome, Outcome::passed);
  EXPECT_EQ(result.output, "");
}

// Every way to leave with status 0 before the tests at the end of the program.
class LeavesEarly : public HostileProcesses, public ::testing::WithParamInterface<const char*> {};

TEST_P(LeavesEarly, IsNotPassed) {
  const RunResult result = run(std::string(GetParam()) + "\nassert False, 'the tests'\n");
  EXPECT_EQ(result.outcome, Outcome::unfinished) << result.output;
  EXPECT_EQ(result.exit_status, 0);
}

INSTANTIATE_TEST_SUITE_P(
    HostileProcesses, LeavesEarly,
    ::testing::Values("import sys; sys.exit(0)", "import os; os._exit(0)", "raise SystemExit", "exit()", "quit(0)",
                      "import os; os.execv('/usr/bin/true', ['true'])", "import ctypes; ctypes.CDLL(None).exit(0)",
                      "import sys; sys.excepthook = lambda *a: __import__('os')._exit(0)",
                      "import os, atexit; atexit.register(os._exit, 0)",
                      "import threading, os; threading.Thread(target=os._exit, args=(0,)).start(); import time; time.sleep(60)",
                      "import os; os.write(1, b'passed'); os.write(4, b'0' * 32); os._exit(0)",
                      "import os; os.write(4, b'0' * 60000); os._exit(0)"));

// A copy of the process that runs on to the program's end is not the program.
TEST_F(HostileProcesses, LeavesTheEndToAChild) {
  const RunResult result = run("import os\nif os.fork() != 0:\n    os.wait()\n    os._exit(0)");
  EXPECT_EQ(result.outcome, Outcome::unfinished) << result.output;
}

}  // namespace
}  // namespace hlat::test
