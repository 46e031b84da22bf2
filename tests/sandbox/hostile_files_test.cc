// Hostile programs that reach for files, devices and secrets of the host.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "base/error.h"
#include "support/sandbox_fixture.h"

namespace hlat::test {
namespace {

using sandbox::Outcome;
using sandbox::RunResult;

using HostileFiles = SandboxTest;

TEST_F(HostileFiles, DeletesOutside) {
  expect_all_refused(fmt::format(R"(
import os, shutil
attempt('file', lambda: os.remove('{0}/kept'))
attempt('folder', lambda: shutil.rmtree('{0}'))
attempt('interpreter', lambda: os.remove('/usr/bin/python3'))
attempt('library', lambda: os.rename('/usr/lib', '/usr/gone'))
attempt('device', lambda: os.remove('/dev/null'))
for folder in '/usr/bin', '/etc', '/dev', '/bin':
    shutil.rmtree(folder, ignore_errors=True)
assert os.path.exists('/usr/bin/python3') and os.path.exists('/dev/null')
)",
                                 folder()),
                     5);
  EXPECT_TRUE(std::filesystem::exists("/usr/bin/python3"));
}

TEST_F(HostileFiles, WritesOutside) {
  expect_all_refused(fmt::format(R"(
import os
for path in '{}/new', '/new', '/usr/new', '/usr/lib/new', '/etc/new', '/etc/ld.so.cache', '/dev/new', '/var/tmp/new', '/home/new', '/run/new':
    attempt(path, lambda: open(path, 'w'))
attempt('append', lambda: open('/usr/bin/python3', 'ab'))
attempt('permissions', lambda: os.chmod('/usr', 0o777))
attempt('times', lambda: os.utime('/usr'))
# Where permissions alone would refuse, mounts do too.
for path in '/', '/usr', '/etc/ld.so.cache', '/etc/alternatives':
    flags = os.statvfs(path).f_flag
    assert not os.path.exists(path) or flags & os.ST_RDONLY and flags & os.ST_NOSUID and flags & os.ST_NODEV, path
assert os.statvfs('/tmp').f_flag & os.ST_NOEXEC
open('/tmp/hlat_sandbox_file_of_a_program', 'w').write('mine')
)",
                                 folder()),
                     13);
  EXPECT_FALSE(std::filesystem::exists("/tmp/hlat_sandbox_file_of_a_program"));
}

// Links in the scratch folder, and what may follow them: the program itself, and whoever cleans up behind it.
TEST_F(HostileFiles, EscapesThroughLinks) {
  expect_all_refused(fmt::format(R"(
import os
os.symlink('{0}', 'folder')
os.symlink('{0}/kept', 'file')
os.symlink('/', 'root')
os.symlink('/proc/1/root{0}', 'process')
os.symlink('../' * 30 + '{0}'[1:], 'up')
attempt('folder', lambda: open('folder/new', 'w'))
attempt('file', lambda: open('file', 'r+'))
attempt('root', lambda: open('root{0}/kept', 'w'))
attempt('process', lambda: open('process/kept', 'w'))
attempt('up', lambda: open('up/kept', 'w'))
attempt('hard link', lambda: os.link('/usr/bin/python3', 'python'))
attempt('handle', lambda: os.open('..' + '/..' * 30 + '{0}/kept', os.O_RDWR))
)",
                                 folder()),
                     7);
}

TEST_F(HostileFiles, ReadsSecretsOfTheHost) {
  expect_all_refused(fmt::format(R"(
import os
for path in '{}/kept', '/etc/shadow', '/etc/passwd', '/etc/hostname', '/root', '/home', '/var', '/run/docker.sock', '/boot', '/srv', '/mnt':
    attempt(path, lambda: os.stat(path))
)",
                                 folder()),
                     11);
}

TEST_F(HostileFiles, SearchesProcAndSys) {
  expect_all_refused(R"(
import os
for path in ('/proc', '/proc/1/environ', '/proc/self/mem', '/proc/sysrq-trigger', '/proc/sys/kernel/core_pattern', '/sys', '/sys/fs/cgroup',
             '/sys/kernel/debug', '/dev/fd/0'):
    attempt(path, lambda: os.stat(path))
)",
                     9);
}

TEST_F(HostileFiles, ReadsTheEnvironment) {
  ASSERT_EQ(setenv("HLAT_TEST_SECRET", "the-secret-of-the-caller", 1), 0);
  const RunResult result =
      run("import os, sys, socket\nprint(sorted(os.environ), os.environ, sys.argv, sys.orig_argv, socket.gethostname())");
  unsetenv("HLAT_TEST_SECRET");
  EXPECT_EQ(result.outcome, Outcome::passed) << result.output;
  EXPECT_EQ(result.output.find("secret"), std::string::npos) << result.output;
  EXPECT_EQ(result.output.find("['HOME', 'LANG', 'OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'PATH', 'PYTHONHASHSEED']"), 0u)
      << result.output;
  EXPECT_NE(result.output.find(" sandbox\n"), std::string::npos) << result.output;
}

TEST_F(HostileFiles, UsesDevices) {
  expect_all_refused(R"(
import os, stat
assert sorted(os.listdir('/dev')) == ['full', 'null', 'random', 'shm', 'urandom', 'zero']
for name in 'mem', 'kmsg', 'sda', 'nvidia0', 'tty', 'ptmx', 'fuse', 'kvm', 'net/tun':
    attempt(name, lambda: open('/dev/' + name))
attempt('mknod', lambda: os.mknod('/tmp/memory', 0o600 | stat.S_IFCHR, os.makedev(1, 1)))
)",
                     10);
}

TEST_F(HostileFiles, UsesFilesThatTheCallerHasOpen) {
  std::ofstream open_file(file(), std::ios::app);
  const int inherited = fcntl(STDERR_FILENO, F_DUPFD, 100);  // not marked to be closed
  const RunResult result = run(R"(
import os
for number in range(3, 1024):
    try:
        os.fstat(number)
        print(number)
    except OSError:
        pass
)");
  close(inherited);
  EXPECT_EQ(result.output, "4\n") << "the one for the mark";
}

TEST_F(HostileFiles, ReadsStandardInput) {
  const RunResult result = run("import os, sys\nprint(repr(sys.stdin.read()), os.isatty(0), os.isatty(1), os.isatty(2))");
  EXPECT_EQ(result.output, "'' False False False\n");
}

}  // namespace
}  // namespace hlat::test
