// Runs untrusted Python programs so that they cannot harm the machine: docs/sandbox.md says against what and how.
//
// Every run is a process of its own in new user, mount, PID, network, IPC and UTS namespaces. It is nobody to the host, sees the system's
// programs and libraries read-only and a scratch folder in memory, and has limits; a filter takes dangerous system calls away.
// Nothing of a run is left when `run` returns: the kernel ends all its processes with the first one, and the scratch folder with them.
// Where any of this cannot be had, making a Sandbox throws; no program ever runs with less.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace hlat::sandbox {

struct Options {
  double seconds = 3;                   // wall clock, from the start of the interpreter
  uint64_t memory = uint64_t{1} << 30;  // bytes: address space of a process, and resident memory of all of them together
  int processes = 16;                   // and threads, at a time; times `memory` is what the kernel holds a run to at the most
  size_t output = size_t{1} << 20;      // bytes of standard output and standard error together
  uint64_t scratch_bytes = uint64_t{64} << 20;
  uint64_t scratch_files = 4096;  // and folders and links
};

enum class Outcome : uint8_t {
  passed,      // ran to its end and left with status 0
  failed,      // an exception, or another status
  unfinished,  // left with status 0 before its end
  timed_out,
  memory,  // more than it may have
  output,  // more than it may write
  killed,  // by a signal
};
const char* name_of(Outcome outcome);  // "timed out"

struct RunResult {
  Outcome outcome = Outcome::failed;
  int exit_status = -1;  // -1: a signal ended it
  int signal = 0;        // 0: it left by itself
  std::string output;    // standard output and standard error as they came, at most Options::output
  double seconds = 0;
};

class Jail;

class Sandbox {
 public:
  // Checks all that a run needs by making one. UsageError: what is missing on this machine and how to get it.
  explicit Sandbox(const Options& options = {});
  ~Sandbox();
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;

  // Runs the text of a program. Any number of threads may call at once. FaultError: the machine could not start it.
  RunResult run(const std::string& program) const;

 private:
  Options options_;
  std::unique_ptr<const Jail> jail_;
};

}  // namespace hlat::sandbox
