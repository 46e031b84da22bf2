// A sandbox for tests, with things outside it that must not come to harm: a file that everybody may write, in a folder that everybody
// may change, and processes: whatever a program does, the file is as it was and no process of the program is left when a test ends.
// Skips where the machine lets nobody make a sandbox; where it does, a refusal is a failure.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "sandbox/sandbox.h"
#include "support/temp_dir.h"

namespace hlat::test {

class SandboxTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // Small limits, and time for a busy machine.
  static sandbox::Options limits();
  sandbox::RunResult run(const std::string& program) const { return run(program, limits()); }
  sandbox::RunResult run(const std::string& program, const sandbox::Options& options) const {
    return sandbox::Sandbox(options).run(program);
  }
  // Runs a program in which every attempt("...") was refused; it prints a line for each. `attempts`: how many there are.
  void expect_all_refused(const std::string& program, int attempts) const;

  std::string file() const { return folder_.path("kept"); }
  std::string folder() const { return folder_.path(); }

 private:
  TempDir folder_;
};

// Calls until it gives true, for up to a minute.
bool happens(const std::function<bool()>& condition);

// Processes of the machine with this word in their command line.
int processes_with(const std::string& word);

// ThreadSanitizer forbids threads in a copy of the process, and a run needs one.
#ifdef __SANITIZE_THREAD__
constexpr bool kCopiesCanRun = false;
#else
constexpr bool kCopiesCanRun = true;
#endif

// In a copy of this process, so that it may give up what the test still needs. The exit status: what `body` returns.
int in_child(const std::function<int()>& body);

}  // namespace hlat::test
