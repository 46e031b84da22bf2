// Hostile programs that take what others need: processes, memory, time, the terminal, the disk.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "sandbox/process.h"
#include "support/sandbox_fixture.h"

namespace hlat::test {
namespace {

using sandbox::Options;
using sandbox::Outcome;
using sandbox::RunResult;

class HostileResources : public SandboxTest {
 protected:
  // The most processes, threads among them, that descend from this one while `body` runs.
  static size_t most_tasks(const std::function<void()>& body) {
    std::atomic<bool> done = false;
    size_t most = 0;
    std::thread watch([&] {
      while (!done) {
        size_t tasks = 0;
        const std::vector<pid_t> tree = sandbox::process_tree(getpid());
        for (const pid_t process : tree) {
          std::error_code gone;
          const std::filesystem::directory_iterator threads("/proc/" + std::to_string(process) + "/task", gone);
          if (process != getpid() && !gone) tasks += static_cast<size_t>(std::distance(begin(threads), end(threads)));
        }
        most = std::max(most, tasks);
      }
    });
    body();
    done = true;
    watch.join();
    return most;
  }

  static Options short_time() {
    Options options = limits();
    options.seconds = 2;
    return options;
  }
};

TEST_F(HostileResources, ForkBomb) {
  RunResult result;
  const size_t most = most_tasks([&] {
    result = run(R"(
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
)",
                 short_time());
  });
  EXPECT_EQ(result.outcome, Outcome::timed_out) << result.output;
  EXPECT_LE(most, static_cast<size_t>(limits().processes));
  EXPECT_GT(most, 2u);
}

TEST_F(HostileResources, ThreadBomb) {
  RunResult result;
  const size_t most = most_tasks([&] {
    result = run(R"(
import threading, time
while True:
    try:
        threading.Thread(target=time.sleep, args=(1000,)).start()
    except RuntimeError:
        pass
)",
                 short_time());
  });
  EXPECT_EQ(result.outcome, Outcome::timed_out) << result.output;
  EXPECT_LE(most, static_cast<size_t>(limits().processes));
  EXPECT_GT(most, 2u);
}

TEST_F(HostileResources, HugeAllocation) {
  const RunResult result = run("block = bytearray(1 << 40)");
  EXPECT_EQ(result.outcome, Outcome::memory) << result.output;
}

TEST_F(HostileResources, AllocationThatGrows) {
  const RunResult result = run(R"(
blocks = []
try:
    while True:
        blocks.append(bytearray(1 << 20))
finally:
    print(len(blocks), flush=True)
)");
  EXPECT_EQ(result.outcome, Outcome::memory) << result.output;
  EXPECT_LT(std::stoi(result.output), static_cast<int>(limits().memory >> 20));
}

// Each has less than a process may have. Nothing but their sum tells.
TEST_F(HostileResources, AllocationInManyProcesses) {
  const RunResult result = run(R"(
import os, time
for i in range(4):
    if os.fork() == 0:
        block = b'x' * (150 << 20)
        time.sleep(1000)
time.sleep(1000)
)");
  EXPECT_EQ(result.outcome, Outcome::memory) << result.output;
}

TEST_F(HostileResources, EndlessLoop) {
  const RunResult result = run("while True: pass", short_time());
  EXPECT_EQ(result.outcome, Outcome::timed_out);
  EXPECT_EQ(result.exit_status, -1);
}

TEST_F(HostileResources, SleepForever) {
  const RunResult result = run("import time\nprint('before', flush=True)\ntime.sleep(10 ** 9)", short_time());
  EXPECT_EQ(result.outcome, Outcome::timed_out);
  EXPECT_EQ(result.output, "before\n");
}

TEST_F(HostileResources, OutputFlood) {
  const RunResult result = run("import os\nwhile True: os.write(1, b'flood ' * 10000)");
  EXPECT_EQ(result.outcome, Outcome::output);
  EXPECT_EQ(result.output.size(), limits().output);
}

TEST_F(HostileResources, OutputFloodOfManyProcesses) {
  const RunResult result = run("import os\nfor i in range(3): os.fork()\nwhile True: os.write(2, b'flood ' * 10000)");
  EXPECT_EQ(result.outcome, Outcome::output);
  EXPECT_EQ(result.output.size(), limits().output);
}

TEST_F(HostileResources, FillsTheScratchFolder) {
  const RunResult result = run(R"(
import os
written = 0
for i in range(1000):
    try:
        with open(f'/tmp/{i}', 'wb', buffering=0) as file:
            while True:
                written += file.write(b'x' * 65536)
    except OSError as full:
        pass
print(written)
)");
  EXPECT_EQ(result.outcome, Outcome::passed) << result.output;
  EXPECT_LE(std::stoull(result.output), limits().scratch_bytes);
}

// Also through names of other folders, and with permissions that nobody could clean up behind it.
TEST_F(HostileResources, FillsTheScratchFolderWithFiles) {
  const RunResult result = run(R"(
import os
made = 0
for folder in '/tmp', '/dev/shm', '/tmp/closed':
    for i in range(100000):
        try:
            os.makedirs(f'{folder}/{i}')
            os.chmod(f'{folder}/{i}', 0)
            made += 1
        except OSError:
            break
print(made)
)");
  EXPECT_EQ(result.outcome, Outcome::passed) << result.output;
  EXPECT_EQ(std::stoull(result.output), limits().scratch_files);
}

TEST_F(HostileResources, DeepFolders) {
  const RunResult result = run(R"(
import os
depth = 0
try:
    while True:
        os.mkdir('d' * 200)
        os.chdir('d' * 200)
        depth += 1
except OSError:
    print(depth)
)");
  EXPECT_EQ(result.outcome, Outcome::passed) << result.output;
  EXPECT_EQ(std::stoull(result.output), limits().scratch_files);
}

TEST_F(HostileResources, DeepRecursion) {
  const RunResult caught = run("def deeper(n): return deeper(n + 1)\ndeeper(0)");
  EXPECT_EQ(caught.outcome, Outcome::failed);
  // Past the interpreter's own guard, on the machine's stack.
  const RunResult crashed = run(R"(
import sys
sys.setrecursionlimit(10 ** 9)
nested = []
for i in range(10 ** 5):
    nested = [nested]
repr(nested)
)");
  EXPECT_TRUE(crashed.outcome == Outcome::killed || crashed.outcome == Outcome::failed) << name_of(crashed.outcome);  // by its version
}

TEST_F(HostileResources, RaisesItsLimits) {
  expect_all_refused(R"(
import resource
for name in 'AS', 'NPROC', 'FSIZE', 'CPU', 'NOFILE', 'CORE', 'MSGQUEUE', 'MEMLOCK':
    limit = getattr(resource, 'RLIMIT_' + name)
    hard = resource.getrlimit(limit)[1]
    attempt(name, lambda: resource.setrlimit(limit, (hard + 1, hard + 1)))
    assert hard < 1 << 40, name
)",
                     8);
}

}  // namespace
}  // namespace hlat::test
