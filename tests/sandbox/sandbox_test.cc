// Programs in the sandbox: what a run tells, whom it runs as, several at once, and where a sandbox is refused.
#include "sandbox/sandbox.h"

#include <grp.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <sstream>
#include <thread>
#include <vector>

#include "base/error.h"
#include "sandbox/process.h"
#include "sandbox/system_view.h"
#include "support/message_of.h"
#include "support/sandbox_fixture.h"

namespace hlat::test {
namespace {

using sandbox::Options;
using sandbox::Outcome;
using sandbox::RunResult;
using sandbox::Sandbox;

using SandboxRuns = SandboxTest;

TEST_F(SandboxRuns, AProgramToItsEnd) {
  const RunResult result = run("print('text')\nassert __name__ == '__main__'");
  EXPECT_EQ(result.outcome, Outcome::passed) << result.output;
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_EQ(result.signal, 0);
  EXPECT_EQ(result.output, "text\n");
  EXPECT_GT(result.seconds, 0);
}

TEST_F(SandboxRuns, AndTellsHowItFailed) {
  const RunResult assertion = run("assert 1 + 1 == 3, 'sum'");
  EXPECT_EQ(assertion.outcome, Outcome::failed);
  EXPECT_EQ(assertion.exit_status, 1);
  EXPECT_NE(assertion.output.find("AssertionError: sum"), std::string::npos) << assertion.output;
  const RunResult status = run("import sys\nsys.exit(7)");
  EXPECT_EQ(status.outcome, Outcome::failed);
  EXPECT_EQ(status.exit_status, 7);
  const RunResult broken = run("def (");
  EXPECT_EQ(broken.outcome, Outcome::failed);
  EXPECT_NE(broken.output.find("SyntaxError"), std::string::npos) << broken.output;
  EXPECT_EQ(run(std::string("x = 1\0\n", 7)).outcome, Outcome::failed);
  EXPECT_EQ(run("x = '\xff'").outcome, Outcome::failed);
  const RunResult crash = run("import ctypes\nctypes.string_at(0)");
  EXPECT_EQ(crash.outcome, Outcome::killed);
  EXPECT_EQ(crash.signal, SIGSEGV);
  EXPECT_EQ(crash.exit_status, -1);
}

// Its own names only, found by modules that look for them; the same hashes each time; text as UTF-8; room in the scratch folder.
TEST_F(SandboxRuns, AsIfItHadBeenStartedAlone) {
  const std::string program = R"(
import dataclasses, os, pickle, sys, tempfile
@dataclasses.dataclass
class Point:
    x: int
assert pickle.loads(pickle.dumps(Point(3))) == Point(3)
with tempfile.NamedTemporaryFile() as file:
    assert file.name.startswith('/tmp/')
assert os.getcwd() == os.path.expanduser('~') == '/tmp'
assert '' not in sys.path and not {'run', 'mark', 'write'} & set(globals())
print('\u00e9', hash('text'), list({'a', 'b', 'c', 'd'}))
)";
  const RunResult first = run(program), second = run(program);
  EXPECT_EQ(first.outcome, Outcome::passed) << first.output;
  EXPECT_EQ(first.output.substr(0, 3), "\xc3\xa9 ");
  EXPECT_EQ(first.output, second.output);
}

TEST_F(SandboxRuns, ALongProgram) {
  std::string program = "total = 0\n";
  for (int i = 0; i < 20000; ++i) program += "total += 1\n";
  EXPECT_EQ(run(program + "assert total == 20000").outcome, Outcome::passed);
}

TEST_F(SandboxRuns, SeveralFromSeveralThreads) {
  const Sandbox box(limits());
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 4; ++i) {
        const std::string number = std::to_string(10 * t + i);
        const RunResult good = box.run("open('/tmp/file', 'x').write('" + number + "')\nprint(open('/tmp/file').read())");
        right += good.outcome == Outcome::passed && good.output == number + "\n";
        right += box.run("import sys\nsys.exit(" + number + " + 1)").exit_status == 10 * t + i + 1;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 48);
  EXPECT_EQ(prctl(PR_GET_DUMPABLE), 1) << "this process may leave a core as before";
}

// Limits hold for each run alone: others that use theirs up do not take from it.
TEST_F(SandboxRuns, BesideARunThatUsesUpItsLimits) {
  Options options = limits();
  options.seconds = 3;
  const Sandbox greedy(options), box(limits());
  std::thread other(
      [&] { EXPECT_EQ(greedy.run("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass").outcome, Outcome::timed_out); });
  const RunResult result =
      box.run("import subprocess\nfor i in range(5): assert subprocess.run(['echo'], capture_output=True).stdout == b'\\n'");
  other.join();
  EXPECT_EQ(result.outcome, Outcome::passed) << result.output;
}

std::string line_of(const std::string& status, const std::string& name) {
  std::istringstream lines(status);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(name + ":\t")) return line.substr(name.size() + 2);
  return "none";
}

// As the host sees the process of a program, also where the caller belongs to many groups.
TEST_F(SandboxRuns, AsNobodyToTheHost) {
  std::vector<gid_t> groups(static_cast<size_t>(getgroups(0, nullptr)));
  getgroups(static_cast<int>(groups.size()), groups.data());
  const std::array<gid_t, 2> more{0, 4};
  const bool root = geteuid() == 0 && setgroups(more.size(), more.data()) == 0;
  Options options = limits();
  options.seconds = 120;
  const Sandbox box(options);
  std::string status, first_to_go;
  std::thread stopping([&] {
    EXPECT_TRUE(happens([&] {
      const auto tree = sandbox::process_tree(getpid());
      if (tree.size() < 2) return false;
      status = slurp("/proc/" + std::to_string(tree[1]) + "/status");
      if (line_of(status, "Seccomp") != "2" || line_of(status, "Name") == "unit_tests") return false;
      first_to_go = slurp("/proc/" + std::to_string(tree[1]) + "/oom_score_adj");
      if (first_to_go != "1000\n") return false;  // written once the program runs
      return kill(tree[1], SIGKILL) == 0;
    }));
  });
  const RunResult result = box.run("import time\ntime.sleep(1000)");
  stopping.join();
  if (root) setgroups(groups.size(), groups.data());
  EXPECT_EQ(result.outcome, Outcome::killed);
  EXPECT_EQ(result.signal, SIGKILL);
  const std::string id = std::to_string(root ? 65534 : geteuid());
  EXPECT_EQ(line_of(status, "Uid"), fmt::format("{0}\t{0}\t{0}\t{0}", id));
  EXPECT_EQ(line_of(status, "NoNewPrivs"), "1");
  EXPECT_EQ(first_to_go, "1000\n") << "when the machine has no memory left";
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}) EXPECT_EQ(line_of(status, set), "0000000000000000") << set;
  EXPECT_TRUE(!root || line_of(status, "Groups").find_first_not_of(' ') == std::string::npos) << status;
}

// The same for a caller without privileges.
TEST_F(SandboxRuns, ForACallerThatIsNotRoot) {
  if (!kCopiesCanRun) GTEST_SKIP() << "the thread sanitizer forbids threads in a copy of the process";
  if (geteuid() != 0) GTEST_SKIP() << "all other tests here are that";
  const std::string canary = file();
  const int outcome = in_child([&] {
    if (setgroups(0, nullptr) != 0 || setgid(65534) != 0 || setuid(65534) != 0) return 100;
    prctl(PR_SET_DUMPABLE, 1);  // the change of users made its /proc root's
    const std::string message = message_of([] { const Sandbox made; });
    if (message.find("cannot make namespaces") != std::string::npos) return 101;
    if (message != "no exception") return 102;
    const RunResult result = Sandbox().run("import os\nprint(os.path.exists('" + canary + "'), os.getuid(), os.access('/usr', os.W_OK))");
    return result.outcome == Outcome::passed && result.output == "False 1000 False\n" ? 0 : 1;
  });
  if (outcome == 101) GTEST_SKIP() << "only root may make namespaces here";
  EXPECT_EQ(outcome, 0);
}

// As a container's filter does: no new user namespaces.
bool forbid_namespaces() {
  std::array<sock_filter, 6> program{{{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
                                      {BPF_JMP | BPF_JEQ | BPF_K, 0, 3, SYS_clone},
                                      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, args)},
                                      {BPF_JMP | BPF_JSET | BPF_K, 0, 1, CLONE_NEWUSER},
                                      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM},
                                      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}}};
  const sock_fprog filter{program.size(), program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

TEST(SandboxRefuses, WithoutNamespaces) {
  if (!kCopiesCanRun) GTEST_SKIP() << "the thread sanitizer forbids threads in a copy of the process";
  EXPECT_EQ(in_child([] {
              if (!forbid_namespaces()) return 100;
              try {
                const Sandbox made;
              } catch (const UsageError& refusal) {
                const std::string message = refusal.what();
                for (const char* part : {"cannot make namespaces: Operation not permitted", "no program runs without it", "docker run"})
                  if (message.find(part) == std::string::npos) return 2;
                return 0;
              }
              return 1;
            }),
            0);
}

TEST(SandboxRefuses, WithoutPython) {
  const TempDir empty;
  EXPECT_THROW(sandbox::find_python(empty.path()), UsageError);
  const std::string message = message_of([&] { sandbox::find_python(empty.path()); });
  EXPECT_NE(message.find("Debian package: python3"), std::string::npos) << message;
  std::filesystem::create_directories(empty.path("usr/local/bin"));
  empty.write("usr/local/bin/python3", "");
  EXPECT_EQ(sandbox::find_python(empty.path()), "/usr/local/bin/python3");
}

using SandboxRefusesHere = SandboxTest;
TEST_F(SandboxRefusesHere, LimitsThatTheInterpreterCannotStartIn) {
  Options options = limits();
  options.memory = 1 << 20;
  const std::string message = message_of([&] { const Sandbox made(options); });
  EXPECT_NE(message.find("none is run"), std::string::npos) << message;
}

// Systems differ: /lib is a link, or a folder of its own.
TEST(SystemView, HasTheSystemAndNothingElse) {
  const TempDir root;
  for (const char* folder : {"usr/lib", "lib64", "etc/alternatives", "home/user", "root", "dev", "var"})
    std::filesystem::create_directories(root.path(folder));
  std::filesystem::create_symlink("usr/lib", root.path("lib"));
  root.write("etc/ld.so.cache", "");
  root.write("etc/shadow", "");
  std::vector<std::string> shown;
  for (const sandbox::Place& place : sandbox::system_view(root.path()))
    shown.push_back(place.target + (place.kind == sandbox::Place::Kind::link ? " -> " + place.source : ""));
  EXPECT_EQ(shown, (std::vector<std::string>{"usr", "lib -> usr/lib", "lib64", "etc/ld.so.cache", "etc/alternatives", "dev/null",
                                             "dev/zero", "dev/full", "dev/random", "dev/urandom", "dev/shm -> /tmp"}));
}

}  // namespace
}  // namespace hlat::test
