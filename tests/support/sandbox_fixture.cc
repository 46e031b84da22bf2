#include "support/sandbox_fixture.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <sstream>
#include <thread>

#include "sandbox/process.h"

namespace hlat::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kContent = "kept";

int status_of(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Whether this machine has what a sandbox needs, asked without it. Not by unshare: a sanitizer's own thread would forbid it.
bool machine_can() {
  if (!fs::exists("/usr/bin/python3")) return false;
  constexpr long kNamespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
  const long child = syscall(SYS_clone, kNamespaces | SIGCHLD, 0L, 0L, 0L, 0L);
  if (child == 0) syscall(SYS_exit_group, mount("tmpfs", "/tmp", "tmpfs", 0, "") == 0 ? 0L : 1L);
  return child > 0 && status_of(static_cast<pid_t>(child)) == 0;
}

}  // namespace

void SandboxTest::SetUp() {
  if (!machine_can()) GTEST_SKIP() << "this machine has no python3 or no user namespaces";
  ASSERT_EQ(chmod(folder().c_str(), 0777), 0);
  folder_.write("kept", kContent);
  ASSERT_EQ(chmod(file().c_str(), 0666), 0);
}

void SandboxTest::TearDown() {
  if (IsSkipped()) return;
  EXPECT_EQ(slurp(file()), kContent);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder()), fs::directory_iterator()), 1);
  EXPECT_EQ(sandbox::process_tree(getpid()).size(), 1u) << "processes are left";
}

sandbox::Options SandboxTest::limits() {
  return {.seconds = 60, .memory = uint64_t{256} << 20, .processes = 12, .output = 100000, .scratch_bytes = 4 << 20, .scratch_files = 500};
}

void SandboxTest::expect_all_refused(const std::string& program, int attempts) const {
  const sandbox::RunResult result = run(R"(
def attempt(name, call):
    try:
        got = call()
    except BaseException as refusal:
        print('refused', name, repr(refusal))
    else:
        print('DONE', name, got)
)" + program);
  EXPECT_EQ(name_of(result.outcome), std::string("passed")) << result.output;
  EXPECT_EQ(result.output.find("DONE"), std::string::npos) << result.output;
  int refused = 0;
  std::istringstream lines(result.output);
  for (std::string line; std::getline(lines, line);) refused += line.starts_with("refused ");
  EXPECT_EQ(refused, attempts) << result.output;
}

bool happens(const std::function<bool()>& condition) {
  for (int i = 0; i < 6000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

int processes_with(const std::string& word) {
  int found = 0;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    std::ifstream in(entry.path() / "cmdline", std::ios::binary);
    const std::string line{std::istreambuf_iterator<char>(in), {}};
    found += line.find(word) != std::string::npos;
  }
  return found;
}

int in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  return status_of(child);
}

}  // namespace hlat::test
